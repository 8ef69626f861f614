//! Network Status Monitor, version 1 (X/Open XNFS, chapter 11): hosts notify each other of
//! restarts, so that locks can be released or reclaimed.

use base::limits::NLM_STRING_MAX;

#[cfg(test)]
mod tests;

/// RPC program number of the status monitor.
pub const NSM_PROGRAM: u32 = 100_024;
/// Its only version.
pub const NSM_V1: u32 = 1;

xdr_enum! {
    /// A procedure number.
    pub enum Proc {
        /// Do nothing.
        NULL = 0 "sm_null",
        /// Whether a host can be watched.
        STAT = 1 "sm_stat",
        /// Watch a host (for a lock manager on the same machine).
        MON = 2 "sm_mon",
        /// Watch it no longer.
        UNMON = 3 "sm_unmon",
        /// Watch none any longer.
        UNMON_ALL = 4 "sm_unmon_all",
        /// Do as if the machine had restarted.
        SIMU_CRASH = 5 "sm_simu_crash",
        /// A host has restarted.
        NOTIFY = 6 "sm_notify",
    }
}

xdr_enum! {
    /// `res` of SM_STAT and SM_MON.
    pub enum StatRes {
        /// It can be watched.
        SUCC = 0 "STAT_SUCC",
        /// It cannot.
        FAIL = 1 "STAT_FAIL",
    }
}

xdr_bytes! {
    /// The name of a host.
    pub struct SmName, NLM_STRING_MAX, "sm_name"
}

xdr_structs! {
    /// Argument of SM_STAT (`sm_name`).
    #[derive(Copy)]
    StatArgs<'a> { mon_name: SmName<'a> }

    /// Results of SM_STAT and SM_MON (`sm_stat_res`): the state number is odd when up.
    #[derive(Copy)]
    SmStatRes { res_stat: StatRes, state: u32 }

    /// The host to notify, and the call for it (`my_id`): argument of SM_UNMON_ALL.
    #[derive(Copy)]
    MyId<'a> { my_name: SmName<'a>, my_prog: u32, my_vers: u32, my_proc: u32 }

    /// The monitored host, and the host to notify (`mon_id`): argument of SM_UNMON.
    #[derive(Copy)]
    MonId<'a> { mon_name: SmName<'a>, my_id: MyId<'a> }

    /// Argument of SM_MON (`mon`).
    #[derive(Copy)]
    MonArgs<'a> { mon_id: MonId<'a>, private: [u8; 16] }

    /// Result of SM_UNMON and SM_UNMON_ALL (`sm_stat`).
    #[derive(Copy)]
    SmStat { state: u32 }

    /// Argument of SM_NOTIFY (`stat_chge`).
    #[derive(Copy)]
    NotifyArgs<'a> { mon_name: SmName<'a>, state: u32 }
}
