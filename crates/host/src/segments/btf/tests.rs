//! A small description made here, every prefix of it, and the one of this machine.

use super::*;

/// A description under construction.
#[derive(Default)]
pub struct Maker {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
}

impl Maker {
    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if name.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes().chain([0]));
        at
    }

    fn one(&mut self, name: &str, info: u32, size: u32, rest: &[u32]) -> u32 {
        let name = self.name(name);
        for word in [name, info, size].iter().chain(rest) {
            self.types.extend(word.to_ne_bytes());
        }
        self.count += 1;
        self.count
    }

    /// An integer of this number of bytes.
    pub fn integer(&mut self, name: &str, bytes: u32) -> u32 {
        self.one(name, 1 << 24, bytes, &[bytes * 8])
    }

    /// A type without members: pointer, typedef, const.
    pub fn of(&mut self, kind: u32, name: &str, id: u32) -> u32 {
        self.one(name, kind << 24, id, &[])
    }

    /// A structure (4) or union (5): names, types, bits; `flag` when bits have a width in them.
    pub fn structure(&mut self, kind: u32, name: &str, flag: u32, all: &[(&str, u32, u32)]) -> u32 {
        let mut rest = Vec::new();
        for (member, id, place) in all {
            rest.extend([self.name(member), *id, *place]);
        }
        let info = flag << 31 | kind << 24 | all.len() as u32;
        self.one(name, info, 64, &rest)
    }

    /// The file.
    pub fn file(&self) -> Vec<u8> {
        let mut out = MAGIC.to_ne_bytes().to_vec();
        out.extend([VERSION, 0]);
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        for word in [HEADER as u32, 0, types, types, strings] {
            out.extend(word.to_ne_bytes());
        }
        out.extend(&self.types);
        out.extend(&self.strings);
        out
    }
}

fn small() -> Vec<u8> {
    let mut m = Maker::default();
    let int = m.integer("unsigned int", 4);
    let byte = m.integer("unsigned char", 1);
    let alias = m.of(8, "u32", int);
    let constant = m.of(10, "", alias);
    let net = m.structure(4, "net", 0, &[("inum", constant, 96)]);
    let pointer = m.of(2, "", net);
    let possible = m.structure(4, "", 0, &[("net", pointer, 0)]);
    let possible = m.of(8, "possible_net_t", possible);
    let inner = m.structure(5, "", 0, &[("key", int, 0), ("mark", byte, 0)]);
    m.structure(4, "device", 0, &[("index", int, 32), ("", inner, 64), ("nd_net", possible, 128)]);
    let bits = [("low", byte, 4 << 24 | 8), ("high", byte, 4 << 24 | 12), ("all", int, 32)];
    m.structure(4, "options", 1, &bits);
    m.of(8, "btf_trace_softirq_entry", pointer);
    m.file()
}

fn at(offset: u32, bytes: u32) -> Field {
    Field { offset, bytes, bits: None }
}

#[test]
fn fields_are_found_by_their_names() {
    let btf = Btf::parse(small()).expect("parses");
    assert_eq!(btf.field("device", "index"), Ok(at(4, 4)));
    assert_eq!(btf.field("device", "key"), Ok(at(8, 4)), "inside what has no name");
    assert_eq!(btf.field("device", "mark"), Ok(at(8, 1)));
    assert_eq!(btf.field("device", "nd_net.net"), Ok(at(16, 8)));
    assert_eq!(btf.field("net", "inum"), Ok(at(12, 4)), "through const and typedef");
    assert_eq!(btf.id("btf_trace_softirq_entry", Kind::Alias), Ok(12));
}

#[test]
#[cfg(target_endian = "little")]
fn bit_fields_have_their_offset_and_width() {
    let btf = Btf::parse(small()).expect("parses");
    let field = |low, width| Field { offset: 1, bytes: 1, bits: Some((low, width)) };
    assert_eq!(btf.field("options", "low"), Ok(field(0, 4)));
    assert_eq!(btf.field("options", "high"), Ok(field(4, 4)));
    assert_eq!(btf.field("options", "all"), Ok(at(4, 4)), "no width: a whole one");
}

#[test]
fn what_is_missing_is_named() {
    let btf = Btf::parse(small()).expect("parses");
    let error = btf.field("device", "nd_net.cookie").expect_err("absent");
    assert_eq!(error.to_string(), "this kernel has no field device.nd_net.cookie");
    let error = btf.id("btf_trace_tcp_probe", Kind::Alias).expect_err("absent");
    assert_eq!(error.to_string(), "this kernel has no type btf_trace_tcp_probe");
    assert!(btf.id("device", Kind::Alias).is_err(), "of another kind");
}

#[test]
fn every_prefix_is_refused() {
    let whole = small();
    for length in 0..whole.len() {
        let error = Btf::parse(whole[..length].to_vec()).expect_err("shortened");
        assert!(!matches!(error, BtfError::NoType(_)), "{length}: {error}");
    }
}

/// A changed byte gives an error or another answer, never a panic or an endless walk.
#[test]
fn every_changed_byte_is_survived() {
    let whole = small();
    for n in 0..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[n] ^= change;
            let Ok(btf) = Btf::parse(bytes) else { continue };
            for path in ["index", "mark", "nd_net.net", "nd_net.none"] {
                let _ = btf.field("device", path);
            }
            let _ = (btf.field("options", "high"), btf.id("btf_trace_tcp_probe", Kind::Alias));
        }
    }
}

#[test]
fn types_that_lead_in_a_circle_end() {
    let mut m = Maker::default();
    m.of(8, "a", 2);
    m.of(8, "b", 1);
    m.structure(4, "s", 0, &[("", 3, 0), ("x", 1, 0)]);
    let btf = Btf::parse(m.file()).expect("parses");
    assert!(btf.field("s", "x").is_err());
    assert!(btf.field("s", "y").is_err());
}

#[test]
fn later_forms_are_refused_by_name() {
    let mut bytes = small();
    bytes[2] = 2;
    assert_eq!(
        Btf::parse(bytes).expect_err("version").to_string(),
        "version 2 of type information is not supported"
    );
    let mut m = Maker::default();
    m.of(21, "x", 0);
    assert_eq!(Btf::parse(m.file()).expect_err("kind"), BtfError::Kind(21));
    assert_eq!(Btf::parse(b"\x7fELF".to_vec()).expect_err("other"), BtfError::NotOne);
}

#[test]
fn this_kernel_describes_what_programs_read() {
    let Ok(bytes) = std::fs::read(super::super::TYPES) else {
        println!("SKIP tcp-programs: no type information");
        return;
    };
    let started = std::time::Instant::now();
    let btf = Btf::parse(bytes).expect("parses");
    assert_eq!(btf.field("sk_buff", "len").map(|f| f.bytes), Ok(4));
    assert_eq!(btf.field("net_device", "nd_net.net").map(|f| f.bytes), Ok(8));
    let scale = btf.field("tcp_sock", "rx_opt.snd_wscale").expect("a field of bits");
    assert_eq!(scale.bits.map(|(_, width)| width), Some(4));
    println!("{} types, {:?}", btf.types.all.len(), started.elapsed());
}
