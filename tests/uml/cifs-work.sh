# In a guest: what programs do with files, on the share at /mnt/smb; for each step the requests that Linux' SMB client has sent.
tree=/tmp/tree
for dir in $(seq 20); do
    mkdir -p "$tree/t/d$dir"
    for file in $(seq 10); do head -c 8192 /dev/urandom >"$tree/t/d$dir/f$file.h"; done
done
tar cf "$tree/t.tar" -C "$tree" t
requests() { awk '$1 == "SMBs:" { print $2; exit }' /proc/fs/cifs/Stats; }
step() { # NAME
    before=$(requests)
    "$1"
    echo "$1 $(($(requests) - before))"
}
unpack() { tar xf "$tree/t.tar" -C /mnt/smb; sync; }
read_all() { find /mnt/smb/t -type f -exec cat {} + >/dev/null; }
read_again() { read_all; }
look_at_all() { find /mnt/smb/t -type f -printf '%s\n' >/dev/null; }
append() { for _ in $(seq 100); do echo line >>/mnt/smb/t/log; done; }
rewrite() { for _ in $(seq 50); do head -c 20000 /dev/zero >/mnt/smb/t/o; cat /mnt/smb/t/o >/dev/null; done; }
read_often() { for _ in $(seq 40); do cat /mnt/smb/t/d1/*.h >/dev/null; done; }
for name in unpack read_all read_again look_at_all append rewrite read_often; do step "$name"; done
