#!/usr/bin/env bash
# x86_levels.bash BUILD: the linear kernels with the instruction sets that this machine lacks: AVX-512 without VNNI and with,
# AVX-VNNI. Bochs emulates a whole machine of each kind, which boots Linux and runs test_kernels; qemu knows no AVX-512. Part of
# tests/full.sh; tests/install/clean_system.bash says what it needs. Bochs is that of Debian 13, for with version 2.7's AVX-512
# nothing boots; Linux is that of Debian 12, for 6.12 stands still in Bochs as soon as a program computes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$(cd "$1" && pwd)/bin/test_kernels
. "$root/tests/install/clean_system.bash"
tmp=$(mktemp -d)
system=$tmp/system
trap 'umount "$system/dev/pts" 2>/dev/null || true; leave_system "$system"; rm -rf "$tmp"' EXIT
CHROOT_SUITE=trixie clean_system "$system"
mount -t devpts devpts "$system/dev/pts"  # Bochs draws on a terminal
mkdir "$system/work" "$system/work/files"
ldd "$program" | grep -o '/[^ ]*' | xargs cp -L --parents -t "$system/work/files"
cp "$program" "$system/work/files/"

in_system "$system" <<'EOC'
sed 's/trixie/bookworm/' /etc/apt/sources.list >/etc/apt/sources.list.d/linux.list
apt-get update >/dev/null
apt-get install -y --no-install-recommends bochs-term bochsbios vgabios isolinux syslinux-common xorriso busybox-static cpio \
  bsdutils linux-image-cloud-amd64/bookworm >/var/log/x86_levels 2>&1 || { tail -n 20 /var/log/x86_levels; exit 1; }
cd /work
cat >files/init <<'END'
#!/busybox sh
/busybox mkdir -p /proc /sys /dev /tmp
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sys /sys
/busybox mount -t devtmpfs dev /dev
/busybox mount -t tmpfs tmp /tmp
/test_kernels --gtest_filter='CpuDevice.RunsTheIsaThatATestAsksFor:Linear.*:LinearRows.*:Pack.*'
echo "ended with status $?"
/busybox sleep 5  # or the console loses its end
/busybox poweroff -f
END
chmod +x files/init
cp /bin/busybox files/
mkdir -p disk/isolinux
(cd files && find . | cpio -o -H newc --quiet | gzip -1) >disk/files.gz
cp /boot/vmlinuz-* disk/linux
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 disk/isolinux/
# Bochs never ends what the kernel copies by "fast short rep mov"; of what else it has, what the tests do not need is hidden.
cat >disk/isolinux/isolinux.cfg <<'END'
DEFAULT linux
LABEL linux
KERNEL /linux
APPEND initrd=/files.gz rdinit=/init console=ttyS0 quiet nosmp nokaslr mitigations=off ibt=off nopku nosmap nosmep tsc=reliable random.trust_cpu=on clearcpuid=fsrm,sha_ni,umip,rdpid,vaes,gfni,vpclmulqdq,avx512_vpopcntdq
END
xorriso -as mkisofs -quiet -o disk.iso -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table disk 2>/var/log/x86_levels || { cat /var/log/x86_levels; exit 1; }
echo c >commands
EOC

level() {  # Bochs' name of a CPU, the best instruction set that the kernels find there
  cat >"$system/work/$1" <<END
config_interface: textconfig
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=$1, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=512, host=512
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$1.console
log: $1.log
panic: action=fatal
clock: sync=none
END
  # SIGTERM would only stop it in its debugger.
  chroot "$system" env TERM=xterm script -qfc "cd /work && timeout -s KILL 1800 bochs -q -f $1 -rc commands" /dev/null \
    </dev/null >/dev/null 2>&1 || true
  echo "-- $1"
  tr -d '\r' <"$system/work/$1.console" | grep -aE '^runs|PASSED|FAILED|tests ran|ended with' || tail -n 5 "$system/work/$1.console"
  grep -aq "^runs $2"$'\r' "$system/work/$1.console" && grep -aq 'ended with status 0' "$system/work/$1.console"
}
failed=0
level corei7_skylake_x AVX3 &
first=$!
level arrow_lake AVX2_VNNI || failed=1
wait $first || failed=1
level corei7_icelake_u AVX3_DL || failed=1
exit $failed
