#!/bin/sh
# Installs Tally on this machine: the binary, its user, its systemd unit. Running it again changes nothing that is
# right already, and replaces binary and unit by newer ones; data and settings are never touched.
#
#   sudo scripts/install.sh [--binary FILE] [--start] [--dry-run]
#
#   --binary FILE  the executable to install (default: dist/tally beside this directory)
#   --start        enable the service and (re)start it
#   --dry-run      only print what would be done
set -eu

here=$(cd "$(dirname "$0")" && pwd)
binary=$here/../dist/tally
unit=$here/tally.service
start=no
dry=no

refuse() {
    echo "install.sh: $1" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --binary)
        [ $# -ge 2 ] || refuse "--binary needs a file"
        binary=$2
        shift
        ;;
    --start) start=yes ;;
    --dry-run) dry=yes ;;
    -h | --help)
        sed -n 's/^# \{0,1\}//; 2,9p' "$0"
        exit 0
        ;;
    *) refuse "unknown option $1 (see --help)" ;;
    esac
    shift
done

# What the machine is to look like.
bin=/usr/local/bin/tally
service=/etc/systemd/system/tally.service
settings=/etc/tally/tally.env

[ -f "$binary" ] || refuse "there is no $binary: build it (npm run build), or name one with --binary"
[ -f "$unit" ] || refuse "there is no $unit"
if [ "$dry" = no ] && [ "$(id -u)" -ne 0 ]; then
    refuse "must run as root (or with --dry-run)"
fi

run() {
    if [ "$dry" = yes ]; then
        echo "would run: $*"
    else
        echo "$*"
        "$@"
    fi
}

if id -u tally >/dev/null 2>&1; then
    echo "user tally is there"
else
    run useradd --system --user-group --home-dir /var/lib/tally --no-create-home --shell /usr/sbin/nologin tally
fi

if cmp -s "$binary" "$bin"; then
    echo "$bin is up to date"
else
    # Copied beside and renamed: a running tally keeps the file that it was started from.
    run install -D -m 0755 "$binary" "$bin.new"
    run mv -f "$bin.new" "$bin"
fi

if [ -f "$settings" ]; then
    echo "$settings is there"
else
    run install -d -m 0750 -g tally /etc/tally
    run install -m 0640 -g tally /dev/null "$settings"
fi

if cmp -s "$unit" "$service"; then
    echo "$service is up to date"
else
    run install -D -m 0644 "$unit" "$service"
    # Without a running systemd (an image that is being built) there is nothing to reload.
    if [ -d /run/systemd/system ]; then
        run systemctl daemon-reload
    fi
fi

if [ "$start" = yes ]; then
    run systemctl enable tally.service
    run systemctl restart tally.service
else
    echo "to start it: systemctl enable --now tally"
fi
