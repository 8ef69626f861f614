# Reads zpool status and zfs list of one pool, and prints a line for each device, share and snapshot.
import subprocess, sys

name = sys.argv[1]
words = {"AVAIL": "available", "INUSE": "in use", "UNAVAIL": "unavailable"}
roles = {"logs": "log", "cache": "cache", "spares": "spare"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


used, available = run("zfs", "get", "-H", "-p", "-o", "value", "used,available", name).split()
print("pool", used, available)
role = "data"
for line in run("zpool", "status", name).split("config:")[1].split("errors:")[0].splitlines():
    row = line.split()
    if not row or row[0] in ("NAME", name):
        continue
    if row[0] in roles:
        role = roles[row[0]]
    elif "-" not in row[0]:
        counts = row[2:5] if row[2:3] and row[2].isdigit() else ["0", "0", "0"]
        print(role, row[0], words.get(row[1], row[1].lower()), *counts)
datasets = run("zfs", "list", "-H", "-r", "-t", "all", "-o", "name", name).split()[1:]
for kind in "share", "snapshot":
    for one in datasets:
        if ("@" in one) == (kind == "snapshot"):
            print(kind, one.split("/", 1)[1])
