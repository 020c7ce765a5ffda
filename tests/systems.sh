#!/bin/sh
# systems.sh FOLDER SYSTEM...: tries the two commands of the README, make demo and make test, in new minimal systems.
#
# A SYSTEM is a release of Debian, such as trixie, or one with another compiler of that release, such as sid:g++-15. Each is made anew
# under FOLDER, holds a clone of this repository's last commit, and knows nothing else. The log of each stands beside it. Ends with
# a line that counts, and fails if a command failed. Needs root, debootstrap and Debian's archive.
set -eu

folder=$1
shift
[ "$(id -u)" = 0 ] || { echo "systems.sh: only root can make a system; sudo make test-systems" >&2; exit 2; }
command -v debootstrap > /dev/null || { echo "systems.sh: debootstrap is missing; apt install debootstrap" >&2; exit 2; }
source=$(git rev-parse --show-toplevel)
mkdir -p "$folder"
folder=$(realpath "$folder")

# A tree is the same for all compilers of a release, without the packages that a command installed. An archive may be of an earlier day
# than the clock.
make_tree() {
  [ -e "$folder/$1.tar" ] || {
    rm -rf "$folder/$1.tree"
    debootstrap --variant=minbase --include=make,git,ca-certificates "$1" "$folder/$1.tree"
    echo 'Acquire::Check-Valid-Until "false";' > "$folder/$1.tree/etc/apt/apt.conf.d/99archive"
    tar -C "$folder/$1.tree" -cf "$folder/$1.tar" .
    rm -rf "$folder/$1.tree"
  }
  rm -rf "$2" && mkdir "$2" && tar -C "$2" -xf "$folder/$1.tar"
  cp /etc/resolv.conf "$2/etc"
  git clone -q "$source" "$2/minimind.cpp"
}

# Runs a command in the tree. Its mounts and processes end with it.
run_in() {
  # shellcheck disable=SC2016 # The inner shell expands these.
  unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" && mount -t tmpfs tmpfs "$1/tmp" &&
    exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd minimind.cpp && $2"' run_in "$1" "$2"
}

passed=0 failed=0
for system in "$@"; do
  release=${system%%:*}
  compiler=${system#"$release"}
  tree=$folder/$(echo "$system" | tr : _)
  if make_tree "$release" "$tree" > "$tree.log" 2>&1; then
    for goal in demo test; do
      if run_in "$tree" "make $goal ${compiler:+CXX=${compiler#:}}" >> "$tree.log" 2>&1; then
        passed=$((passed + 1)) result=passed
      else
        failed=$((failed + 1)) result="failed; see $tree.log"
      fi
      echo "$system: make $goal $result"
    done
  else
    failed=$((failed + 2))
    echo "$system: no system could be made; see $tree.log"
  fi
  rm -rf "$tree"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
