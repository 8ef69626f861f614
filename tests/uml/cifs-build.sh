# Untars and builds a small C project on /mnt/$NAME, and does with files what users do. With NAME set.
cd "/mnt/$NAME"
mkdir work
tar xzf /mnt/host/project.tar.gz -C work --no-same-owner
make -s -C work check
[ "$(work/build/words --version)" = 'words 1.2' ]
make -s -C work -q all
mkdir -p names/a/b names/c
echo one >names/a/one
mv names/a/one names/c/uno
mv names/a/b names/c/b
ln names/c/uno names/hard
[ "$(cat names/hard)" = one ]
! mkdir names/c 2>/dev/null
! rmdir names/c 2>/dev/null
touch -d '2001-02-03 04:05:06' names/c/uno
[ "$(stat -c %Y names/hard)" = "$(date -d '2001-02-03 04:05:06' +%s)" ]
rmdir names/a
# What is open is still there under another name, and when its name is gone.
echo old >open
exec 3<open
mv open moved
[ "$(cat <&3)" = old ]
exec 3<&-
echo new >fresh
mv fresh moved
mv moved open
[ "$(cat open)" = new ]
echo there >gone
exec 3<gone
rm gone
[ "$(cat <&3)" = there ]
exec 3<&-
[ ! -e gone ]
dd if=/dev/urandom of=big bs=1M count=8 conv=fsync 2>/dev/null
sha256sum big >/tmp/big.sum
mkdir many
(cd many && seq -f 'f%04.0f' 300 | xargs touch)
[ "$(ls many | wc -l)" = 300 ]
cd / && umount "/mnt/$NAME"
