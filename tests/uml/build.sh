# The guest's job: mount over NFS, untar and build a small C project there, and do what users do with files.
# Run by `sh` in the shared folder, with SERVER, PORT, EXPORT and VERSION set; every line must succeed.
set -eu
case $VERSION in
3) options=vers=3,proto=${PROTO:-tcp},port=$PORT,mountport=$PORT,mountproto=tcp,nolock,noresvport ;;
*) options=vers=$VERSION,proto=${PROTO:-tcp},port=$PORT,noresvport ;;
esac
[ -z "${MOUNTPORT:-}" ] || options=$options,mountport=$MOUNTPORT
step() { echo "step: $* ($(cut -d' ' -f1 /proc/uptime) s)"; }

step mount
mount -t nfs -o "$options" "$SERVER:$EXPORT" /mnt/nfs
grep -E " /mnt/nfs nfs4? .*vers=$VERSION[,.]" /proc/mounts
cd /mnt/nfs
df -k . | tail -1

step untar and build
mkdir work
tar xzf /mnt/host/project.tar.gz -C work
make -s -C work check
[ "$(work/build/words --version)" = 'words 1.2' ]
make -s -C work -q all

step rebuild after a change
sleep 1    # make compares whole seconds on some file systems
echo '/* changed */' >>work/src/fnv.c
! make -s -C work -q all
make -s -C work check

step names
mkdir -p names/a/b names/c
echo one >names/a/one
mv names/a/one names/c/uno
mv names/a/b names/c/b
ln names/c/uno names/hard
ln -s c/uno names/soft
[ "$(cat names/soft)" = one ]
[ "$(stat -c %h names/hard)" = 2 ]
mkfifo names/fifo
long=$(printf 'n%.0s' $(seq 255))
echo long >"names/$long"
odd=$(printf 'odd \377\001\n.')
echo odd >"names/$odd"
[ "$(cat "names/$odd")" = odd ]
! mkdir names/c 2>/dev/null
! rmdir names/c 2>/dev/null
! mv names/c names/c/b/c 2>/dev/null
chmod 640 names/c/uno
[ "$(stat -c %a names/hard)" = 640 ]
touch -d '2001-02-03 04:05:06' names/c/uno
[ "$(stat -c %Y names/hard)" = "$(date -d '2001-02-03 04:05:06' +%s)" ]
rmdir names/a

step data
dd if=/dev/urandom of=big bs=1M count=24 conv=fsync 2>/dev/null
sha256sum big >/tmp/big.sum
dd if=/dev/urandom of=big bs=4k count=100 seek=1000 conv=notrunc,fsync 2>/dev/null
truncate -s 20M big
printf tail >>big
sha256sum big >/tmp/big.sum
truncate -s 1G sparse
printf x | dd of=sparse bs=1 seek=500000000 conv=notrunc 2>/dev/null
[ "$(stat -c %s sparse)" = 1073741824 ]

step many names
mkdir many
(cd many && seq -f 'f%04.0f' 600 | xargs touch)
[ "$(ls many | wc -l)" = 600 ]
(cd many && ls | sed -n '1~2p' | xargs rm)
[ "$(ls many | wc -l)" = 300 ]

step an open file that is removed
exec 3<work/data/text
rm work/data/text
head -c 11 <&3 | grep -q '^The sea is '
exec 3<&-

step read back with nothing cached
sync
echo 3 >/proc/sys/vm/drop_caches
sha256sum -c --quiet /tmp/big.sum
cd / && umount /mnt/nfs
mount -t nfs -o "$options" "$SERVER:$EXPORT" /mnt/nfs
cd /mnt/nfs
sha256sum -c --quiet /tmp/big.sum
[ "$(od -An -c -j 499999999 -N 3 sparse | tr -d ' ')" = '\0x\0' ]
work/build/selftest

step what the host must see, too
find . -type f ! -name sparse -print0 | sort -z | xargs -0 sha256sum -z >/mnt/host/sums
find . ! -path . -printf '%y %m %n %p %l\0' | sort -z >/mnt/host/names
cd / && umount /mnt/nfs
step done
