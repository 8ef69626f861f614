"""Reads a file over SMB with smbprotocol while its server is taken over: HOST USER PASSWORD SHARE.

Prints "reading" once it has the file with a durable handle, reads until that fails, connects again, and prints what
became of the handle: "continued", or "refused" with the status. Then it begins again."""

import sys
import time
import uuid

from smbprotocol.connection import Connection
from smbprotocol.create_contexts import (
    CreateContextName,
    SMB2CreateContextRequest,
    SMB2CreateDurableHandleReconnectV2,
    SMB2CreateDurableHandleRequestV2,
)
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FileAttributes,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    RequestedOplockLevel,
    ShareAccess,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

host, user, password, share = sys.argv[1:]
DATA = b"written before the takeover"
# How long the server may be away.
AWAY_S = 120
# The same client each time: a handle is continued by no other one.
client = uuid.uuid4()
FAILURES = (SMBException, OSError, ValueError)


def context(name, data):
    one = SMB2CreateContextRequest()
    one["buffer_name"] = name
    one["buffer_data"] = data
    return one


def connect():
    """A connection with the share; the server may be away."""
    end = time.monotonic() + AWAY_S
    while True:
        try:
            connection = Connection(client, host, 445)
            connection.connect(timeout=5)
            session = Session(connection, username=user, password=password, auth_protocol="ntlm")
            session.connect()
            tree = TreeConnect(session, rf"\\{host}\{share}")
            tree.connect()
            return connection, tree
        except FAILURES:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def create(tree, contexts):
    """The file, with an oplock of which a handle may be durable."""
    file = Open(tree, "f")
    access = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
    shared = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE
    got = file.create(
        ImpersonationLevel.Impersonation,
        access,
        FileAttributes.FILE_ATTRIBUTE_NORMAL,
        shared,
        CreateDisposition.FILE_OPEN_IF,
        CreateOptions.FILE_NON_DIRECTORY_FILE,
        create_contexts=contexts,
        oplock_level=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH,
    )
    return file, got


def durable(tree):
    guid = uuid.uuid4()
    request = SMB2CreateDurableHandleRequestV2()
    request["create_guid"] = guid
    name = CreateContextName.SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
    file, got = create(tree, [context(name, request)])
    assert got, "the handle is not durable"
    return file, guid


def again(tree, file, guid):
    """What the server answers to the claim of a handle."""
    claim = SMB2CreateDurableHandleReconnectV2()
    claim["file_id"] = file.file_id
    claim["create_guid"] = guid
    name = CreateContextName.SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
    try:
        continued, _ = create(tree, [context(name, claim)])
    except SMBResponseException as e:
        return f"refused {e.status:#x}"
    assert continued.read(0, len(DATA)) == DATA
    continued.close()
    return "continued"


_, tree = connect()
while True:
    file, guid = durable(tree)
    file.write(DATA, 0)
    print("reading", flush=True)
    try:
        while True:
            assert file.read(0, len(DATA)) == DATA
    except FAILURES:
        pass
    _, tree = connect()
    became = again(tree, file, guid)
    other, _ = create(tree, None)
    assert other.read(0, len(DATA)) == DATA
    other.close()
    print(became, flush=True)
