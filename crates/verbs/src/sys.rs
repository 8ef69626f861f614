//! Types and calls of libibverbs and librdmacm, as far as they are used: their stable ABI (soname
//! 1), written by hand from the headers of rdma-core. Sizes and offsets are checked at compile time
//! against the values of a C compiler.

#![allow(dead_code, reason = "some members only stand for their place")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{sockaddr, sockaddr_storage};

/// `enum rdma_cm_event_type`.
pub(crate) mod event {
    pub(crate) const ADDR_RESOLVED: u32 = 0;
    pub(crate) const ADDR_ERROR: u32 = 1;
    pub(crate) const ROUTE_RESOLVED: u32 = 2;
    pub(crate) const CONNECT_REQUEST: u32 = 4;
    pub(crate) const REJECTED: u32 = 8;
    pub(crate) const ESTABLISHED: u32 = 9;
    pub(crate) const DISCONNECTED: u32 = 10;
    pub(crate) const DEVICE_REMOVAL: u32 = 11;
}

/// `RDMA_PS_TCP`.
pub(crate) const PS_TCP: c_int = 0x0106;
/// `IBV_QPT_RC`.
pub(crate) const QPT_RC: c_int = 2;
/// `IBV_TRANSPORT_IWARP`.
pub(crate) const TRANSPORT_IWARP: c_int = 1;

/// `enum ibv_access_flags`.
pub(crate) mod access {
    pub(crate) const LOCAL_WRITE: i32 = 1;
    pub(crate) const REMOTE_WRITE: i32 = 2;
    pub(crate) const REMOTE_READ: i32 = 4;
}

/// `enum ibv_wr_opcode`.
pub(crate) mod opcode {
    pub(crate) const RDMA_WRITE: u32 = 0;
    pub(crate) const SEND: u32 = 2;
    pub(crate) const RDMA_READ: u32 = 4;
    pub(crate) const SEND_WITH_INV: u32 = 9;
}

/// `IBV_SEND_SIGNALED`.
pub(crate) const SIGNALED: c_uint = 2;
/// `IBV_WC_SUCCESS`.
pub(crate) const WC_SUCCESS: u32 = 0;
/// `IBV_WC_WR_FLUSH_ERR`.
pub(crate) const WC_FLUSHED: u32 = 5;

/// `struct ibv_sge`.
#[repr(C)]
pub(crate) struct Sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// `struct ibv_send_wr`, of its unions the member `wr.rdma`.
#[repr(C)]
pub(crate) struct SendWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut SendWr,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: u32,
    pub(crate) send_flags: c_uint,
    pub(crate) invalidate_rkey: u32,
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
    pub(crate) rest: [u32; 19],
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub(crate) struct RecvWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut RecvWr,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Wc {
    pub(crate) wr_id: u64,
    pub(crate) status: u32,
    pub(crate) opcode: u32,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    pub(crate) rest: [u32; 6],
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub(crate) struct QpInitAttr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut Cq,
    pub(crate) recv_cq: *mut Cq,
    pub(crate) srq: *mut c_void,
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
    pub(crate) qp_type: c_int,
    pub(crate) sq_sig_all: c_int,
}

/// `struct ibv_context`: its front.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) device: *mut Device,
    before_poll: [*mut c_void; 11],
    pub(crate) poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int,
    pub(crate) req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    before_send: [*mut c_void; 12],
    pub(crate) post_send: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int,
    pub(crate) post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int,
    after_receive: [*mut c_void; 5],
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
}

/// `struct ibv_device`: its front.
#[repr(C)]
pub(crate) struct Device {
    ops: [*mut c_void; 2],
    node_type: c_int,
    pub(crate) transport_type: c_int,
    names: [c_char; 128],
    pub(crate) dev_path: [c_char; 256],
}

/// `struct ibv_cq`: its front.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) context: *mut Context,
}

/// `struct ibv_qp`: its front.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) context: *mut Context,
}

/// `struct ibv_pd`: never looked into.
#[repr(C)]
pub(crate) struct Pd {
    context: *mut Context,
}

/// `struct ibv_mr`.
#[repr(C)]
pub(crate) struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

/// `struct ibv_comp_channel`: its front.
#[repr(C)]
pub(crate) struct CompChannel {
    context: *mut Context,
    pub(crate) fd: c_int,
}

/// `struct ibv_device_attr`, as words.
#[repr(C, align(8))]
pub(crate) struct DeviceAttr {
    pub(crate) words: [u32; 64],
}

impl DeviceAttr {
    /// `max_qp_rd_atom`: the maximum of outstanding reads of the peer.
    pub(crate) const PEER_READS: usize = 144 / 4;
    /// `max_qp_init_rd_atom`: the maximum of outstanding reads that this side issues.
    pub(crate) const READS: usize = 156 / 4;
}

/// `struct rdma_event_channel`.
#[repr(C)]
pub(crate) struct EventChannel {
    pub(crate) fd: c_int,
}

/// `struct rdma_cm_id`: its front.
#[repr(C)]
pub(crate) struct CmId {
    pub(crate) verbs: *mut Context,
    channel: *mut EventChannel,
    context: *mut c_void,
    pub(crate) qp: *mut Qp,
    pub(crate) src: sockaddr_storage,
    pub(crate) dst: sockaddr_storage,
}

/// `struct rdma_conn_param`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ConnParam {
    pub(crate) private_data: *const c_void,
    pub(crate) private_data_len: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
    pub(crate) qp_num: u32,
}

/// `struct rdma_cm_event`, of its union the member `param.conn`.
#[repr(C)]
pub(crate) struct CmEvent {
    pub(crate) id: *mut CmId,
    listen_id: *mut CmId,
    pub(crate) event: u32,
    pub(crate) status: c_int,
    pub(crate) conn: ConnParam,
}

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Sge>() == 16);
    assert!(size_of::<SendWr>() == 128);
    assert!(offset_of!(SendWr, invalidate_rkey) == 36);
    assert!(offset_of!(SendWr, remote_addr) == 40 && offset_of!(SendWr, rkey) == 48);
    assert!(size_of::<RecvWr>() == 32);
    assert!(size_of::<Wc>() == 48 && offset_of!(Wc, byte_len) == 20);
    assert!(size_of::<QpInitAttr>() == 64 && offset_of!(QpInitAttr, qp_type) == 52);
    assert!(offset_of!(Context, poll_cq) == 96 && offset_of!(Context, req_notify_cq) == 104);
    assert!(offset_of!(Context, post_send) == 208 && offset_of!(Context, post_recv) == 216);
    assert!(offset_of!(Context, cmd_fd) == 264 && offset_of!(Context, async_fd) == 268);
    assert!(offset_of!(Device, transport_type) == 20 && offset_of!(Device, dev_path) == 152);
    assert!(offset_of!(Mr, lkey) == 36 && offset_of!(Mr, rkey) == 40);
    assert!(offset_of!(CompChannel, fd) == 8);
    assert!(size_of::<DeviceAttr>() >= 232);
    assert!(offset_of!(CmId, qp) == 24);
    assert!(offset_of!(CmId, src) == 32 && offset_of!(CmId, dst) == 160);
    assert!(size_of::<ConnParam>() == 24 && offset_of!(ConnParam, qp_num) == 16);
    assert!(offset_of!(CmEvent, event) == 16 && offset_of!(CmEvent, conn) == 24);
};

/// Declares the calls of the libraries: a field for each, and how it is found.
macro_rules! calls {
    ($($library:ident { $($name:ident($($arg:ty),*) $(-> $result:ty)?;)* })*) => {
        /// The calls, looked up.
        pub(crate) struct Calls {
            $($(pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*)*
        }

        impl Calls {
            /// Looks them up: `find` is called with the library and the name, which ends in a zero
            /// byte.
            ///
            /// # Safety
            /// What `find` gives must be the function of that name.
            pub(crate) unsafe fn find<E>(
                mut find: impl FnMut(Library, &'static str) -> Result<*mut c_void, E>,
            ) -> Result<Self, E> {
                Ok(Self {
                    $($($name: {
                        let found = find(Library::$library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: the caller's promise; a function's address is one of data here.
                        unsafe { std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($arg),*) $(-> $result)?,
                        >(found) }
                    },)*)*
                })
            }
        }
    };
}

/// Which library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Verbs,
    Cm,
}

calls! {
    Verbs {
        ibv_alloc_pd(*mut Context) -> *mut Pd;
        ibv_dealloc_pd(*mut Pd) -> c_int;
        ibv_reg_mr(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
        ibv_dereg_mr(*mut Mr) -> c_int;
        ibv_create_comp_channel(*mut Context) -> *mut CompChannel;
        ibv_destroy_comp_channel(*mut CompChannel) -> c_int;
        ibv_create_cq(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
        ibv_destroy_cq(*mut Cq) -> c_int;
        ibv_get_cq_event(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
        ibv_ack_cq_events(*mut Cq, c_uint);
        ibv_query_device(*mut Context, *mut DeviceAttr) -> c_int;
    }
    Cm {
        rdma_create_event_channel() -> *mut EventChannel;
        rdma_destroy_event_channel(*mut EventChannel);
        rdma_create_id(*mut EventChannel, *mut *mut CmId, *mut c_void, c_int) -> c_int;
        rdma_destroy_id(*mut CmId) -> c_int;
        rdma_migrate_id(*mut CmId, *mut EventChannel) -> c_int;
        rdma_bind_addr(*mut CmId, *mut sockaddr) -> c_int;
        rdma_listen(*mut CmId, c_int) -> c_int;
        rdma_resolve_addr(*mut CmId, *mut sockaddr, *mut sockaddr, c_int) -> c_int;
        rdma_resolve_route(*mut CmId, c_int) -> c_int;
        rdma_connect(*mut CmId, *mut ConnParam) -> c_int;
        rdma_create_qp(*mut CmId, *mut Pd, *mut QpInitAttr) -> c_int;
        rdma_destroy_qp(*mut CmId);
        rdma_accept(*mut CmId, *mut ConnParam) -> c_int;
        rdma_reject(*mut CmId, *const c_void, u8) -> c_int;
        rdma_disconnect(*mut CmId) -> c_int;
        rdma_get_cm_event(*mut EventChannel, *mut *mut CmEvent) -> c_int;
        rdma_ack_cm_event(*mut CmEvent) -> c_int;
    }
}
