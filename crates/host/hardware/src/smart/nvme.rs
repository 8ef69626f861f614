//! The health log of an NVMe disk by ioctl, for machines without smartctl: log page 2 of 512 bytes
//! (NVM Express Base Specification, "SMART / Health Information"), as the output that smartctl
//! would have.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use serde_json::json;

use super::Output;
use super::report::FAILING;

/// Length of the page.
pub const PAGE_BYTES: usize = 512;
/// Kelvin of 0 °C, as whole numbers are converted.
const FREEZING_K: i64 = 273;
/// `NVME_IOCTL_ADMIN_CMD` (include/uapi/linux/nvme_ioctl.h): both directions, 72 bytes, type `N`,
/// number 0x41.
const ADMIN_COMMAND: u64 = 3 << 30 | 72 << 16 | 0x4e << 8 | 0x41;
/// Opcode of "Get Log Page".
const GET_LOG_PAGE: u8 = 2;
/// The page, and its length in words of 4 bytes less one.
const HEALTH: u32 = 2 | (PAGE_BYTES as u32 / 4 - 1) << 16;
/// The log of the controller, not of a namespace.
const ALL_NAMESPACES: u32 = u32::MAX;
/// A disk replies within a second, or has failed.
const TIMEOUT_MS: u32 = 10_000;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Debug, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// Whether a name is that of a disk of NVMe: `nvme0n1`.
pub fn is_one(name: &str) -> bool {
    name.starts_with("nvme")
}

/// Reads the health log of a disk by its name in `/dev`, which the caller has checked.
///
/// # Errors
/// The operating system's, or the status of the disk.
pub(super) fn run(name: &str) -> io::Result<Output> {
    let file = File::open(format!("/dev/{name}"))?;
    let mut page = [0_u8; PAGE_BYTES];
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: page.as_mut_ptr() as u64,
        data_length: PAGE_BYTES as u32,
        cdw10: HEALTH,
        timeout_ms: TIMEOUT_MS,
        ..Command::default()
    };
    // SAFETY: a structure of 72 bytes, as the number of the request states, with the address and
    // the length of a buffer that outlives the call.
    let done = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            ADMIN_COMMAND as libc::Ioctl,
            std::ptr::from_mut(&mut command),
        )
    };
    match done {
        0 => Ok(output(&page)),
        status if status > 0 => {
            Err(io::Error::other(format!("the disk replies status {status:#x}")))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The output of smartctl for a page.
pub fn output(page: &[u8; PAGE_BYTES]) -> Output {
    let warning = page[0];
    let kelvin = i64::from(u16::from_le_bytes([page[1], page[2]]));
    // 0: not reported.
    let celsius = (kelvin > 0).then_some(kelvin - FREEZING_K);
    let [media_errors, log_entries, hours] = [160, 176, 128].map(|at| count(page, at));
    let passed = warning == 0;
    let text = json!({
        "smart_support": { "available": true },
        "smart_status": { "passed": passed },
        "temperature": { "current": celsius },
        "power_on_time": { "hours": hours },
        "nvme_smart_health_information_log": {
            "critical_warning": warning,
            "available_spare": page[3],
            "available_spare_threshold": page[4],
            "percentage_used": page[5],
            "media_errors": media_errors,
            "num_err_log_entries": log_entries,
        },
    });
    Output { status: if passed { 0 } else { FAILING }, text: text.to_string() }
}

/// A number of 16 bytes, the lowest first; larger ones than 64 bits become their maximum.
fn count(page: &[u8; PAGE_BYTES], at: usize) -> u64 {
    let bytes = page.iter().skip(at).take(16).rev();
    let value = bytes.fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
