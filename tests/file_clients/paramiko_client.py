"""Tasks with paramiko, one to a line of hexadecimal words: client.py HOST PORT USER PASSWORD; names are bytes."""
import shutil
import sys

import paramiko


def do(sftp, task, one, two):
    if task == b"put":
        # `put` wants names that are text; `putfo` takes what is open.
        with open(one, "rb") as file:
            sftp.putfo(file, two)
    elif task == b"get":
        with open(two, "wb") as file:
            sftp.getfo(one, file)
    elif task == b"reput":
        with open(one, "rb") as file, sftp.open(two, "ab") as there:
            file.seek(sftp.stat(two).st_size)
            shutil.copyfileobj(file, there)
    elif task == b"reget":
        with sftp.open(one, "rb") as there, open(two, "ab") as file:
            there.seek(file.tell())
            shutil.copyfileobj(there, file)
    elif task == b"rename":
        sftp.rename(one, two)
    elif task == b"rm":
        sftp.remove(one)
    elif task == b"ls":
        return "\n".join(sftp.listdir(one)).encode()
    return b""


host, port, user, password = sys.argv[1:]
transport = paramiko.Transport((host, int(port)))
transport.connect(username=user, password=password)
sftp = paramiko.SFTPClient.from_transport(transport)
for line in sys.stdin:
    said = do(sftp, *(bytes.fromhex(word) for word in line.rstrip("\n").split(" ")))
    sys.stdout.buffer.write(b"%d\n" % len(said) + said)
    sys.stdout.buffer.flush()
transport.close()
