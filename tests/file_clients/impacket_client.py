"""Tasks with impacket, one to a line of hexadecimal words: client.py HOST PORT USER PASSWORD; names are UTF-8."""
import sys

from impacket.smbconnection import SMBConnection

SHARE = "data"
FILE_READ_DATA = 1
PIECE = 65536


def do(smb, task, one, two):
    if task == b"put":
        with open(one, "rb") as file:
            smb.putFile(SHARE, path(two), file.read)
    elif task == b"get":
        with open(two, "wb") as file:
            smb.getFile(SHARE, path(one), file.write)
    elif task == b"reget":
        with open(two, "ab") as file:
            resume(smb, path(one), file)
    elif task == b"rename":
        smb.rename(SHARE, path(one), path(two))
    elif task == b"rm":
        smb.deleteFile(SHARE, path(one))
    elif task == b"ls":
        return "\n".join(entry.get_longname() for entry in smb.listPath(SHARE, path(one) + "\\*")).encode()
    return b""


def resume(smb, name, file):
    """getFile has an offset in new versions only."""
    tree = smb.connectTree(SHARE)
    there = smb.openFile(tree, name, desiredAccess=FILE_READ_DATA)
    while data := smb.readFile(tree, there, offset=file.tell(), bytesToRead=PIECE):
        file.write(data)
    smb.closeFile(tree, there)


def path(name):
    return name.decode().replace("/", "\\")


host, port, user, password = sys.argv[1:]
smb = SMBConnection("plimsoll", host, sess_port=int(port))
smb.login(user, password)
for line in sys.stdin:
    said = do(smb, *(bytes.fromhex(word) for word in line.rstrip("\n").split(" ")))
    sys.stdout.buffer.write(b"%d\n" % len(said) + said)
    sys.stdout.buffer.flush()
smb.close()
