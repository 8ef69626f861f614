//! Instructions of the kernel's virtual machine (BPF, RFC 9669), assembled here so that neither a
//! compiler nor a library is needed where the program runs.

/// A register. `R10` is the frame pointer, `R1` the context at the start, `R0` what a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R7,
    R8,
    R9,
    R10,
}

impl Register {
    const fn number(self) -> u8 {
        match self {
            Self::R0 => 0,
            Self::R1 => 1,
            Self::R2 => 2,
            Self::R3 => 3,
            Self::R4 => 4,
            Self::R6 => 6,
            Self::R7 => 7,
            Self::R8 => 8,
            Self::R9 => 9,
            Self::R10 => 10,
        }
    }
}

/// Bytes of a load or a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    B1,
    /// Two bytes.
    B2,
    /// Four bytes.
    B4,
    /// Eight bytes.
    B8,
}

impl Width {
    /// The width of this number of bytes.
    pub const fn of(bytes: u32) -> Option<Self> {
        match bytes {
            1 => Some(Self::B1),
            2 => Some(Self::B2),
            4 => Some(Self::B4),
            8 => Some(Self::B8),
            _ => None,
        }
    }

    /// RFC 9669 §5, the field `sz`.
    const fn bits(self) -> u8 {
        match self {
            Self::B4 => 0x00,
            Self::B2 => 0x08,
            Self::B1 => 0x10,
            Self::B8 => 0x18,
        }
    }
}

/// An operation on 64 bits (RFC 9669 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alu {
    /// `dst += src`
    Add = 0x07,
    /// `dst -= src`
    Sub = 0x17,
    /// `dst *= src`
    Mul = 0x27,
    /// `dst |= src`
    Or = 0x47,
    /// `dst &= src`
    And = 0x57,
    /// `dst <<= src`
    Left = 0x67,
    /// `dst >>= src`, unsigned
    Right = 0x77,
    /// `dst = src`
    Move = 0xb7,
}

/// A comparison of 64 bits that jumps when it holds (RFC 9669 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// `==`
    Equal = 0x15,
    /// `>`, unsigned
    Above = 0x25,
    /// Any common bit.
    Common = 0x45,
    /// `!=`
    Differs = 0x55,
    /// `<`, unsigned
    Below = 0xa5,
    /// `<=`, signed
    AtMostSigned = 0xd5,
}

/// The second operand in a register rather than in the instruction.
const FROM_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_IMMEDIATE: u8 = 0x62;
/// A load of 64 bits from two instructions; source 1: the descriptor of a map.
const LOAD_WIDE: u8 = 0x18;
const MAP: u8 = 1;
/// An atomic addition of 64 bits.
const ATOMIC_ADD: u8 = 0xdb;
/// From big-endian to the machine's order.
const FROM_NETWORK: u8 = 0xdc;
const JUMP_ALWAYS: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// A place in a program, which a jump may name before it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction. Jumps lead forward only, as labels are set once behind them.
#[derive(Debug, Default)]
pub struct Program {
    code: Vec<[u8; 8]>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Program {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, op: u8, to: Register, from: u8, offset: i16, immediate: i32) -> &mut Self {
        let (to, from) = (to.number(), from);
        // The two registers share a byte, in the order of the machine.
        let registers = match cfg!(target_endian = "big") {
            true => to << 4 | from,
            false => from << 4 | to,
        };
        let [o0, o1] = offset.to_ne_bytes();
        let [i0, i1, i2, i3] = immediate.to_ne_bytes();
        self.code.push([op, registers, o0, o1, i0, i1, i2, i3]);
        self
    }

    /// `to OP= value`
    pub fn alu(&mut self, op: Alu, to: Register, value: i32) -> &mut Self {
        self.push(op as u8, to, 0, 0, value)
    }

    /// `to OP= from`
    pub fn alu_of(&mut self, op: Alu, to: Register, from: Register) -> &mut Self {
        self.push(op as u8 | FROM_REGISTER, to, from.number(), 0, 0)
    }

    /// `to = from`
    pub fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.alu_of(Alu::Move, to, from)
    }

    /// `to = value`
    pub fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.alu(Alu::Move, to, value)
    }

    /// `to = from + value`, an address.
    pub fn address(&mut self, to: Register, from: Register, value: i32) -> &mut Self {
        self.copy(to, from).alu(Alu::Add, to, value)
    }

    /// `to = *(from + offset)`, the rest of `to` zero.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) -> &mut Self {
        self.push(LOAD | width.bits(), to, from.number(), offset, 0)
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(STORE | width.bits(), to, from.number(), offset, 0)
    }

    /// `*(to + offset) = value`
    pub fn store_value(
        &mut self,
        width: Width,
        to: Register,
        offset: i16,
        value: i32,
    ) -> &mut Self {
        self.push(STORE_IMMEDIATE | width.bits(), to, 0, offset, value)
    }

    /// `*(to + offset) += from`, at once for all CPUs.
    pub fn add_atomic(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(ATOMIC_ADD, to, from.number(), offset, 0)
    }

    /// The lowest `bits` of `to` from network order.
    pub fn host_order(&mut self, to: Register, bits: i32) -> &mut Self {
        self.push(FROM_NETWORK, to, 0, 0, bits)
    }

    /// `to` is the map with this descriptor.
    pub fn map(&mut self, to: Register, descriptor: i32) -> &mut Self {
        self.push(LOAD_WIDE, to, MAP, 0, descriptor);
        self.push(0, Register::R0, 0, 0, 0)
    }

    /// Calls the function of the kernel with this number (`enum bpf_func_id`).
    pub fn call(&mut self, number: i32) -> &mut Self {
        self.push(CALL, Register::R0, 0, 0, number)
    }

    /// Ends with 0.
    pub fn exit(&mut self) -> &mut Self {
        self.set(Register::R0, 0).push(EXIT, Register::R0, 0, 0, 0)
    }

    /// A place to be set later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Sets a label here.
    pub fn here(&mut self, label: Label) -> &mut Self {
        debug_assert!(self.labels[label.0].is_none(), "a label is set once");
        self.labels[label.0] = Some(self.code.len());
        self
    }

    /// To `label` when `left OP right`.
    pub fn jump(&mut self, op: Jump, left: Register, right: i32, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(op as u8, left, 0, 0, right)
    }

    /// To `label` when `left OP right`.
    pub fn jump_of(&mut self, op: Jump, left: Register, right: Register, to: Label) -> &mut Self {
        self.jumps.push((self.code.len(), to));
        self.push(op as u8 | FROM_REGISTER, left, right.number(), 0, 0)
    }

    /// To `label`.
    pub fn go(&mut self, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP_ALWAYS, Register::R0, 0, 0, 0)
    }

    /// The instructions, jumps resolved.
    pub fn assemble(mut self) -> Vec<[u8; 8]> {
        for (at, label) in self.jumps {
            let to = self.labels[label.0];
            debug_assert!(to.is_some(), "a label that is jumped to is set");
            let distance = to.and_then(|to| i16::try_from(to as i64 - at as i64 - 1).ok());
            let [low, high] = distance.unwrap_or_default().to_ne_bytes();
            [self.code[at][2], self.code[at][3]] = [low, high];
        }
        self.code
    }
}

#[cfg(test)]
pub mod tests;
