"""Tasks with asyncssh, one to a line of hexadecimal words: client.py HOST PORT USER PASSWORD; names are bytes."""
import asyncio
import sys

import asyncssh


async def do(sftp, task, one, two):
    if task == b"put":
        await sftp.put(one, two)
    elif task == b"get":
        await sftp.get(one, two)
    elif task == b"reput":
        with open(one, "rb") as file:
            async with sftp.open(two, "ab") as there:
                file.seek((await sftp.stat(two)).size)
                await there.write(file.read())
    elif task == b"reget":
        with open(two, "ab") as file:
            async with sftp.open(one, "rb") as there:
                await there.seek(file.tell())
                file.write(await there.read())
    elif task == b"rename":
        await sftp.rename(one, two)
    elif task == b"rm":
        await sftp.remove(one)
    elif task == b"ls":
        return b"\n".join(await sftp.listdir(one))
    return b""


async def main(host, port, user, password):
    own = {"known_hosts": None, "client_keys": None, "config": None, "agent_path": None}
    async with asyncssh.connect(host, int(port), username=user, password=password, **own) as connection:
        async with connection.start_sftp_client() as sftp:
            for line in sys.stdin:
                said = await do(sftp, *(bytes.fromhex(word) for word in line.rstrip("\n").split(" ")))
                sys.stdout.buffer.write(b"%d\n" % len(said) + said)
                sys.stdout.buffer.flush()


asyncio.run(main(*sys.argv[1:]))
