"""Tasks with smbprotocol, one to a line of hexadecimal words: client.py HOST PORT USER PASSWORD; names are UTF-8."""
import shutil
import sys

import smbclient


def do(task, one, two):
    if task == b"put":
        with open(one, "rb") as file, smbclient.open_file(path(two), mode="wb", **keep) as there:
            shutil.copyfileobj(file, there, PIECE)
    elif task == b"get":
        with smbclient.open_file(path(one), mode="rb", **keep) as there, open(two, "wb") as file:
            shutil.copyfileobj(there, file, PIECE)
    elif task == b"reput":
        at = smbclient.stat(path(two), **keep).st_size
        with open(one, "rb") as file, smbclient.open_file(path(two), mode="r+b", **keep) as there:
            file.seek(at)
            there.seek(at)
            shutil.copyfileobj(file, there, PIECE)
    elif task == b"reget":
        with smbclient.open_file(path(one), mode="rb", **keep) as there, open(two, "ab") as file:
            there.seek(file.tell())
            shutil.copyfileobj(there, file, PIECE)
    elif task == b"rename":
        smbclient.rename(path(one), path(two), **keep)
    elif task == b"rm":
        smbclient.remove(path(one), **keep)
    elif task == b"ls":
        return "\n".join(smbclient.listdir(path(one), **keep)).encode()
    return b""


def path(name):
    return "\\\\" + host + "\\data\\" + name.decode().replace("/", "\\")


PIECE = 1 << 20
host, port, user, password = sys.argv[1:]
keep = {"port": int(port)}
smbclient.register_session(host, username=user, password=password, auth_protocol="ntlm", **keep)
for line in sys.stdin:
    said = do(*(bytes.fromhex(word) for word in line.rstrip("\n").split(" ")))
    sys.stdout.buffer.write(b"%d\n" % len(said) + said)
    sys.stdout.buffer.flush()
smbclient.reset_connection_cache()
