# clean_system DIR: a fresh minimal Debian, ready for chroot; leave_system DIR takes it away. For the scripts beside this
# one; needs root, debootstrap and the network. CHROOT_SUITE, CHROOT_MIRROR: another Debian, another mirror; CHROOT_BASE: a
# directory that debootstrap has filled before, to be copied.
clean_system() {
  if [ -n "${CHROOT_BASE:-}" ]; then
    cp -a "$CHROOT_BASE" "$1"
  else
    debootstrap --variant=minbase "${CHROOT_SUITE:-bookworm}" "$1" ${CHROOT_MIRROR:+"$CHROOT_MIRROR"} >"$1.log" 2>&1 ||
      { tail -n 20 "$1.log"; return 1; }
  fi
  mount -t proc proc "$1/proc"  # plugins are loaded through it
}
leave_system() {
  umount "$1/proc" 2>/dev/null || true  # it is not mounted where setting up failed; --one-file-system looks after the rest
  rm -rf --one-file-system "$1"
}
in_system() {  # DIR: runs the script on its input there
  chroot "$1" env -i PATH="$PATH" HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive bash -euo pipefail -s
}
