//! COMPOUND (RFC 8881 §16.2): its header, and its operations one at a time.

use base::limits::NFS4_OPAQUE_LIMIT;

use super::*;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

xdr_bytes! {
    /// The tag that a reply repeats. RFC 8881 sets no limit; we take as much as of any opaque.
    pub struct Tag4, NFS4_OPAQUE_LIMIT, "COMPOUND4args.tag"
}

xdr_structs! {
    /// `COMPOUND4args` up to its operations, of which `count` follow: [`ArgOp::decode`] each.
    #[derive(Copy)]
    CompoundArgs<'a> { tag: Tag4<'a>, minorversion: u32, count: u32 }
    /// `COMPOUND4res` up to its results, of which `count` follow: [`ResOp::decode`] each.
    #[derive(Copy)]
    CompoundRes<'a> { status: Nfsstat4, tag: Tag4<'a>, count: u32 }
}

impl CompoundRes<'_> {
    /// Bytes before the results.
    pub const fn len_with(tag: usize) -> usize {
        12 + tag.next_multiple_of(4)
    }
}

/// Declares the operations of a (CB_)COMPOUND: arguments and results by number.
macro_rules! operations {
    ($number:ident $illegal:ident $arg:ident<$lt:lifetime> $res:ident;
        $($constant:ident $variant:ident($args:ty) -> $result:ty),* $(,)?) => {
        /// An operation with its arguments.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $arg<$lt> {
            $(#[doc = stringify!($constant)] $variant($args),)*
            /// A number that is no operation; what follows it cannot be read.
            Illegal(u32),
        }

        impl<$lt> $arg<$lt> {
            /// Reads the arguments of an operation; its number was read before.
            ///
            /// # Errors
            /// What the arguments have wrong: NFS4ERR_BADXDR for this operation.
            #[inline]
            pub fn decode_args(
                number: $number,
                r: &mut Reader<$lt>,
            ) -> Result<Self, DecodeError> {
                Ok(match number {
                    $($number::$constant => Self::$variant(<$args as Decode<$lt>>::decode(r)?),)*
                    other => Self::Illegal(other.0),
                })
            }

            /// Its number, also that of an illegal one as it was sent.
            pub fn number(&self) -> $number {
                match self {
                    $(Self::$variant(_) => $number::$constant,)*
                    Self::Illegal(number) => $number(*number),
                }
            }
        }

        impl<$lt> Decode<$lt> for $arg<$lt> {
            fn decode(r: &mut Reader<$lt>) -> Result<Self, DecodeError> {
                let number = $number::decode(r)?;
                Self::decode_args(number, r)
            }
        }

        impl Encode for $arg<'_> {
            fn encode(&self, w: &mut Writer<'_>) {
                self.number().encode(w);
                match self {
                    $(Self::$variant(args) => args.encode(w),)*
                    Self::Illegal(_) => {}
                }
            }
        }

        /// An operation's result.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $res<$lt> {
            $(#[doc = stringify!($constant)] $variant($result),)*
            /// What was no operation, with its status.
            Illegal(Nfsstat4),
        }

        impl<$lt> $res<$lt> {
            /// Its number.
            pub fn number(&self) -> $number {
                match self {
                    $(Self::$variant(_) => $number::$constant,)*
                    Self::Illegal(_) => $number::$illegal,
                }
            }

            /// Its status.
            pub fn status(&self) -> Nfsstat4 {
                match self {
                    $(Self::$variant(result) => result.status(),)*
                    Self::Illegal(status) => *status,
                }
            }
        }

        impl<$lt> Decode<$lt> for $res<$lt> {
            fn decode(r: &mut Reader<$lt>) -> Result<Self, DecodeError> {
                Ok(match $number::decode(r)? {
                    $($number::$constant => {
                        Self::$variant(<$result as Decode<$lt>>::decode(r)?)
                    })*
                    $number::$illegal => Self::Illegal(Nfsstat4::decode(r)?),
                    other => {
                        let what = stringify!($number);
                        return Err(DecodeError::BadValue { what, got: other.0 });
                    }
                })
            }
        }

        impl Encode for $res<'_> {
            fn encode(&self, w: &mut Writer<'_>) {
                self.number().encode(w);
                match self {
                    $(Self::$variant(result) => result.encode(w),)*
                    Self::Illegal(status) => status.encode(w),
                }
            }
        }

        #[cfg(test)]
        impl<$lt> crate::arb::Arb<$lt> for $arg<$lt> {
            fn arb(g: &mut crate::arb::Gen<$lt>) -> Self {
                let makers: &[fn(&mut crate::arb::Gen<$lt>) -> Self] =
                    &[$(|g| Self::$variant(g.arb()),)* |_| Self::Illegal(2)];
                makers[usize::from(g.byte()) % makers.len()](g)
            }
        }

        #[cfg(test)]
        impl<$lt> crate::arb::Arb<$lt> for $res<$lt> {
            fn arb(g: &mut crate::arb::Gen<$lt>) -> Self {
                let makers: &[fn(&mut crate::arb::Gen<$lt>) -> Self] =
                    &[$(|g| Self::$variant(g.arb()),)* |_| Self::Illegal(Nfsstat4::OP_ILLEGAL)];
                makers[usize::from(g.byte()) % makers.len()](g)
            }
        }
    };
}

// Large variants are moved once, from the decoder to its handler: a box would cost more.
operations! {
    Opnum4 ILLEGAL ArgOp<'a> ResOp;
    ACCESS Access(AccessArgs4) -> Res4<AccessResOk4>,
    CLOSE Close(CloseArgs4) -> Res4<StateidResOk4>,
    COMMIT Commit(CommitArgs4) -> Res4<CommitResOk4>,
    CREATE Create(CreateArgs4<'a>) -> Res4<CreateResOk4>,
    DELEGPURGE Delegpurge(DelegpurgeArgs4) -> Res4<()>,
    DELEGRETURN Delegreturn(DelegreturnArgs4) -> Res4<()>,
    GETATTR Getattr(GetattrArgs4) -> Res4<GetattrResOk4<'a>>,
    GETFH Getfh(()) -> Res4<GetfhResOk4<'a>>,
    LINK Link(LinkArgs4<'a>) -> Res4<LinkResOk4>,
    LOCK Lock(LockArgs4<'a>) -> LockedRes4<'a>,
    LOCKT Lockt(LocktArgs4<'a>) -> LocktRes4<'a>,
    LOCKU Locku(LockuArgs4) -> Res4<StateidResOk4>,
    LOOKUP Lookup(LookupArgs4<'a>) -> Res4<()>,
    LOOKUPP Lookupp(()) -> Res4<()>,
    NVERIFY Nverify(VerifyArgs4<'a>) -> Res4<()>,
    OPEN Open(OpenArgs4<'a>) -> Res4<OpenResOk4<'a>>,
    OPENATTR Openattr(OpenattrArgs4) -> Res4<()>,
    OPEN_CONFIRM OpenConfirm(OpenConfirmArgs4) -> Res4<StateidResOk4>,
    OPEN_DOWNGRADE OpenDowngrade(OpenDowngradeArgs4) -> Res4<StateidResOk4>,
    PUTFH Putfh(PutfhArgs4<'a>) -> Res4<()>,
    PUTPUBFH Putpubfh(()) -> Res4<()>,
    PUTROOTFH Putrootfh(()) -> Res4<()>,
    READ Read(ReadArgs4) -> Res4<ReadResOk4<'a>>,
    READDIR Readdir(ReaddirArgs4) -> Res4<ReaddirResOk4<'a>>,
    READLINK Readlink(()) -> Res4<ReadlinkResOk4<'a>>,
    REMOVE Remove(RemoveArgs4<'a>) -> Res4<RemoveResOk4>,
    RENAME Rename(RenameArgs4<'a>) -> Res4<RenameResOk4>,
    RENEW Renew(ClientidArgs4) -> Res4<()>,
    RESTOREFH Restorefh(()) -> Res4<()>,
    SAVEFH Savefh(()) -> Res4<()>,
    SECINFO Secinfo(SecinfoArgs4<'a>) -> Res4<SecinfoResOk4<'a>>,
    SETATTR Setattr(SetattrArgs4<'a>) -> SetattrRes4,
    SETCLIENTID Setclientid(SetclientidArgs4<'a>) -> SetclientidRes4<'a>,
    SETCLIENTID_CONFIRM SetclientidConfirm(SetclientidConfirmArgs4) -> Res4<()>,
    VERIFY Verify(VerifyArgs4<'a>) -> Res4<()>,
    WRITE Write(WriteArgs4<'a>) -> Res4<WriteResOk4>,
    RELEASE_LOCKOWNER ReleaseLockowner(ReleaseLockownerArgs4<'a>) -> Res4<()>,
    BACKCHANNEL_CTL BackchannelCtl(BackchannelCtlArgs4<'a>) -> Res4<()>,
    BIND_CONN_TO_SESSION BindConnToSession(BindConnArgs4) -> Res4<BindConnResOk4>,
    EXCHANGE_ID ExchangeId(ExchangeIdArgs4<'a>) -> Res4<ExchangeIdResOk4<'a>>,
    CREATE_SESSION CreateSession(CreateSessionArgs4<'a>) -> Res4<CreateSessionResOk4>,
    DESTROY_SESSION DestroySession(DestroySessionArgs4) -> Res4<()>,
    FREE_STATEID FreeStateid(FreeStateidArgs4) -> Res4<()>,
    GET_DIR_DELEGATION GetDirDelegation(GetDirDelegationArgs4) -> Res4<()>,
    GETDEVICEINFO Getdeviceinfo(GetdeviceinfoArgs4) -> Res4<()>,
    GETDEVICELIST Getdevicelist(GetdevicelistArgs4) -> Res4<()>,
    LAYOUTCOMMIT Layoutcommit(LayoutcommitArgs4<'a>) -> Res4<()>,
    LAYOUTGET Layoutget(LayoutgetArgs4) -> Res4<()>,
    LAYOUTRETURN Layoutreturn(LayoutreturnArgs4<'a>) -> Res4<()>,
    SECINFO_NO_NAME SecinfoNoName(SecinfoNoNameArgs4) -> Res4<SecinfoResOk4<'a>>,
    SEQUENCE Sequence(SequenceArgs4) -> Res4<SequenceResOk4>,
    SET_SSV SetSsv(SetSsvArgs4<'a>) -> Res4<()>,
    TEST_STATEID TestStateid(TestStateidArgs4) -> Res4<TestStateidResOk4>,
    WANT_DELEGATION WantDelegation(WantDelegationArgs4) -> Res4<OpenDelegation4<'a>>,
    DESTROY_CLIENTID DestroyClientid(ClientidArgs4) -> Res4<()>,
    RECLAIM_COMPLETE ReclaimComplete(ReclaimCompleteArgs4) -> Res4<()>,
    ALLOCATE Allocate(AllocateArgs4) -> Res4<()>,
    COPY Copy(CopyArgs4<'a>) -> CopyRes4,
    COPY_NOTIFY CopyNotify(CopyNotifyArgs4<'a>) -> Res4<CopyNotifyResOk4<'a>>,
    DEALLOCATE Deallocate(AllocateArgs4) -> Res4<()>,
    IO_ADVISE IoAdvise(IoAdviseArgs4) -> Res4<IoAdviseResOk4>,
    LAYOUTERROR Layouterror(LayouterrorArgs4) -> Res4<()>,
    LAYOUTSTATS Layoutstats(LayoutstatsArgs4<'a>) -> Res4<()>,
    OFFLOAD_CANCEL OffloadCancel(OffloadArgs4) -> Res4<()>,
    OFFLOAD_STATUS OffloadStatus(OffloadArgs4) -> Res4<OffloadStatusResOk4>,
    READ_PLUS ReadPlus(ReadPlusArgs4) -> Res4<ReadPlusResOk4<'a>>,
    SEEK Seek(SeekArgs4) -> Res4<SeekResOk4>,
    WRITE_SAME WriteSame(WriteSameArgs4<'a>) -> Res4<WriteResponse4>,
    CLONE Clone(CloneArgs4) -> Res4<()>,
    GETXATTR Getxattr(GetxattrArgs4<'a>) -> Res4<GetxattrResOk4<'a>>,
    SETXATTR Setxattr(SetxattrArgs4<'a>) -> Res4<SetxattrResOk4>,
    LISTXATTRS Listxattrs(ListxattrsArgs4) -> Res4<ListxattrsResOk4<'a>>,
    REMOVEXATTR Removexattr(RemovexattrArgs4<'a>) -> Res4<RemovexattrResOk4>,
}

operations! {
    CbOpnum4 CB_ILLEGAL CbArgOp<'a> CbResOp;
    CB_GETATTR Getattr(CbGetattrArgs4<'a>) -> Res4<GetattrResOk4<'a>>,
    CB_RECALL Recall(CbRecallArgs4<'a>) -> Res4<()>,
    CB_RECALL_ANY RecallAny(CbRecallAnyArgs4) -> Res4<()>,
    CB_RECALL_SLOT RecallSlot(CbRecallSlotArgs4) -> Res4<()>,
    CB_SEQUENCE Sequence(CbSequenceArgs4) -> Res4<CbSequenceResOk4>,
    CB_NOTIFY_LOCK NotifyLock(CbNotifyLockArgs4<'a>) -> Res4<()>,
    CB_OFFLOAD Offload(CbOffloadArgs4<'a>) -> Res4<()>,
}
