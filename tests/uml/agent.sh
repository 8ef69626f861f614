# The guest's job when the test gives the orders: each line on the console names a script in the shared folder, which
# runs beside the others. What it writes goes to SCRIPT.log, its end to the console.
# A script tells what happens with `event WORDS`; its PATH has the programs that the test built.
event() { printf '@ %s\n' "$*" >/dev/console; }
order() { # script
    (set -eu; . "/mnt/host/$1") >"/mnt/host/$1.log" 2>&1 </dev/null
    event "$1 ended $?"
}
stty -echo </dev/console
export PATH="/mnt/host:$PATH"
event ready
while read -r script; do order "$script" & done </dev/console
