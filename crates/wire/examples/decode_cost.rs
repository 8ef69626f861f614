//! What decoding a call costs: framing, RPC header with AUTH_SYS, arguments; and writing the
//! replies. `cargo run --release -p wire --example decode_cost` prints nanoseconds per message,
//! the least and the median of several rounds.

use std::hint::black_box;
use std::time::Instant;

use wire::nfs3::{Fattr3, Fh3, GetattrArgs, GetattrRes, Proc, ReadArgs, ReadResOkHead, Res};
use wire::rpc::{self, Auth, AuthSys, CallHeader, Framed, Framer, Gids};
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Messages per round: some milliseconds.
const MESSAGES: u32 = 200_000;
const ROUNDS: usize = 15;

fn call(proc: Proc, args: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let mark = rpc::begin_record(w);
    let cred = Auth::Sys(AuthSys {
        stamp: 1,
        machine: b"client-07.example.org",
        uid: 1000,
        gid: 1000,
        gids: Gids::new(&[4, 24, 27, 30, 46, 100, 1000]),
    });
    CallHeader { xid: 7, prog: 100_003, vers: 3, proc: proc.0, cred, verf: Auth::None }.encode(w);
    args.encode(w);
    rpc::end_record(w, mark);
    bytes
}

fn time(what: &str, mut each: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..MESSAGES).for_each(|_| each());
            start.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{what:<44} {:6.1} ns  (median {:.1})", rounds[0], rounds[ROUNDS / 2]);
}

fn decode<'a, T: Decode<'a>>(framer: &'a mut Framer, input: &'a [u8]) -> Option<(u32, T)> {
    let Ok(Framed::Record { body, .. }) = framer.next(input) else { return None };
    let (call, mut args): (_, Reader<'_>) = rpc::open_call(body).ok()?;
    let Auth::Sys(sys) = &call.cred else { return None };
    black_box(sys.gids.as_slice());
    let value: Result<T, DecodeError> = T::decode(&mut args);
    Some((call.xid, value.ok()?))
}

fn main() {
    let handle = [0x5a; 32];
    let getattr = call(Proc::GETATTR, &GetattrArgs { object: Fh3(&handle) });
    let read = call(Proc::READ, &ReadArgs { file: Fh3(&handle), offset: 1 << 20, count: 4096 });
    let mut framer = Framer::new();
    time("GETATTR call: frame, header, AUTH_SYS, args", || {
        let got = decode::<GetattrArgs<'_>>(&mut framer, black_box(&getattr));
        assert!(black_box(got).is_some());
    });
    time("READ call: frame, header, AUTH_SYS, args", || {
        let got = decode::<ReadArgs<'_>>(&mut framer, black_box(&read));
        assert!(black_box(got).is_some());
    });
    let attr = Fattr3 { size: 4096, ..Fattr3::default() };
    let mut out = Vec::with_capacity(8192);
    time("GETATTR reply: frame, header, result", || {
        out.clear();
        let w = &mut Writer::new(&mut out);
        let mark = rpc::begin_record(w);
        rpc::success(w, 7);
        GetattrRes::encode(black_box(&Res::Ok(attr)), w);
        rpc::end_record(w, mark);
        black_box(&out);
    });
    time("READ reply of 4 KiB without reading the data", || {
        out.clear();
        let w = &mut Writer::new(&mut out);
        let mark = rpc::begin_record(w);
        rpc::success(w, 7);
        let open = ReadResOkHead { attr: black_box(Some(attr)), count_max: 4096 }.begin(w);
        open.finish(w, 4096, true);
        rpc::end_record(w, mark);
        black_box(&out);
    });
    time("READ reply header, data sent from elsewhere", || {
        out.clear();
        let w = &mut Writer::new(&mut out);
        let mark = rpc::begin_record(w);
        rpc::success(w, 7);
        let pad = ReadResOkHead::encode_detached(w, black_box(Some(attr)), 4096, true);
        rpc::end_record_with_tail(w, mark, 4096 + pad);
        black_box(&out);
    });
}
