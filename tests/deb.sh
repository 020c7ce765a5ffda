#!/bin/sh
# deb.sh PACKAGE.deb: lintian finds nothing in it, and in a new Debian 12 it is installed, used, upgraded from a package with a
# lower version, removed and purged, after which each file is as before. Needs root, lintian, debootstrap and Debian's archive.
set -eu

package=$(realpath "$1")
cd "$(dirname "$0")/.."
root=$(pwd)/build/deb-root
[ "$(id -u)" = 0 ] || { echo "deb.sh: only root can make a system; sudo make test-deb" >&2; exit 2; }
version=$(dpkg-deb -f "$package" Version)

fail() {
  echo "deb.sh: $*" >&2
  exit 1
}

findings=$(lintian --allow-root --info --display-info --pedantic "$package")
[ -z "$findings" ] || fail "lintian: $findings"

# Of 100, as many points as rights that the service need not have.
! command -v systemd-analyze > /dev/null || systemd-analyze security --offline=true --threshold=15 tools/debian/minimind.service \
  > /dev/null || fail "minimind.service has rights that it does not need"

[ -e "$root.tar" ] || {
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root"
  tar -C "$root" -cf "$root.tar" .
}
rm -rf "$root" && mkdir "$root" && tar -C "$root" -xf "$root.tar"
cp /etc/resolv.conf "$root/etc"

# Runs a command in the system. Its mounts and processes end with it.
run() {
  # shellcheck disable=SC2016 # The inner shell expands these.
  unshare --mount --pid --fork --kill-child sh -c '
    root=$1 && shift && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
    exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
    run "$root" "$@"
}

# What apt and dpkg write down for themselves is left out.
files_of_the_system() {
  find "$root" -xdev \( -path "$root/proc/*" -o -path "$root/dev/*" -o -path "$root/tmp/*" -o -path "$root/var/lib/dpkg/*" \
    -o -path "$root/var/lib/apt/*" -o -path "$root/var/cache/*" -o -path "$root/var/log/*" -o -path "$root/etc/ld.so.cache" \) \
    -prune -o -print | sort
}

# The same package as if it were an older one.
older=$root/tmp/older.deb
dpkg-deb --raw-extract "$package" "$root/tmp/older"
sed -i "s/^Version: .*/Version: $version~older/" "$root/tmp/older/DEBIAN/control"
dpkg-deb --root-owner-group --build "$root/tmp/older" "$older" > /dev/null
cp "$package" "$root/tmp/new.deb"

run apt-get update -qq
files_of_the_system > "$root.before"
run apt-get install -y -qq --no-install-recommends /tmp/older.deb > /dev/null
echo '# changed' >> "$root/etc/default/minimind"
run apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold /tmp/new.deb > /dev/null
[ "$(run dpkg-query -W -f '${Version} ${Status}' minimind)" = "$version install ok installed" ] || fail "is not installed"
grep -q '# changed' "$root/etc/default/minimind" || fail "the upgrade has replaced /etc/default/minimind"

run minimind --version | grep -q "^minimind ${version%%[-~+]*}$" || fail "has another version than the program in it"
[ "$(run minimind generate -q --greedy -n 24 -p '床前明月光，')" = "$(./minimind generate -q --greedy -n 24 -p '床前明月光，')" ] ||
  fail "the poet writes another poem"
for page in minimind minimind-chat minimind-serve; do
  [ -e "$root/usr/share/man/man1/$page.1.gz" ] && [ -e "$root/usr/share/man/zh_CN/man1/$page.1.gz" ] || fail "has no page $page"
done
run bash -c 'shopt -s extglob; . /usr/share/bash-completion/completions/minimind; COMP_WORDS=(minimind cha) COMP_CWORD=1
  _minimind; [ "${COMPREPLY[*]}" = chat ]' || fail "bash does not complete chat"
[ -e "$root/usr/share/zsh/vendor-completions/_minimind" ] || fail "has no completions for zsh"
[ -e "$root/usr/share/fish/vendor_completions.d/minimind.fish" ] || fail "has no completions for fish"
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/minimind.service" ] || fail "the service is started unasked"

run apt-get remove -y -qq minimind > /dev/null
[ ! -e "$root/usr/bin/minimind" ] || fail "is still there when it is removed"
[ -e "$root/etc/default/minimind" ] || fail "its settings are not kept when it is removed"
run apt-get purge -y -qq minimind > /dev/null
run apt-get autoremove --purge -y -qq > /dev/null
files_of_the_system > "$root.after"
diff "$root.before" "$root.after" || fail "purging it leaves other files than there were before"
rm -rf "$root"
echo "deb.sh: all checks passed"
