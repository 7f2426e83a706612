// SPDX-License-Identifier: MIT
/*
 * init - process 1 of a guest: assemble a private root, run one program, power off.
 *
 * The program gets ready and says so by a byte to descriptor READY. Only then come its page and the
 * trial's folder, and a byte on its standard input. In between the kernel may make an image of the
 * guest, or the guest is one that goes on from an image (reboot(2), LINUX_REBOOT_CMD_SW_SUSPEND, by
 * our patch 0015): so what a program does to get ready must not depend on the trial.
 *
 * The kernel is started in a stage directory; hostfs resolves /proc/self/cwd on the host, so the
 * kernel command line is the same whoever starts it and from wherever.  What the guest sees:
 *
 *   /usr           the host's or a root's, read-only (bin, sbin, lib, lib64 as Debian links them)
 *   /etc           a small tmpfs of our own; no ld.so.cache, which is another on each machine:
 *                  the loader finds each library in the first folder that it looks into
 *   /ff/bundle     harness, native helpers, browser driver, read-only
 *   /ff/page       the built page, read-only
 *   /ff/out        the trial's folder: the only place that outlives the guest
 *   /tmp /run /var /dev/shm   tmpfs
 *
 * Sources: pivot_root(2), mount(2), pipe(2), reboot(2), Documentation/filesystems/hostfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEW "/mnt"
#define STAGE "/proc/self/cwd/"
#define READY 3
#define LEAKS "looking for leaked memory" /* as testbed/base/kernel_warning.py has it */

/*
 * The loader looks into other folders on each level of x86-64, and so makes another number of
 * system calls: everywhere those of x86-64-v2.  The same as testbed/client/interface.py has it.
 */
#define SAME_PROCESSOR \
	"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM"

static void halt(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "guest init: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(errno));
	halt();
}

static void make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) && errno != EEXIST)
		die("mkdir %s", path);
	if (chmod(path, mode))
		die("chmod %s", path);
}

static void mount_new(const char *type, const char *target, unsigned long flags, const char *data)
{
	if (mount("none", target, type, flags, data))
		die("mount %s on %s", type, target);
}

/* Mount a directory of the host; the mount point is made. */
static void mount_host(const char *source, const char *target, unsigned long flags)
{
	make_dir(target, 0755);
	mount_new("hostfs", target, flags | MS_NOSUID | MS_NODEV, source);
}

/* Debian's merged /usr: /bin and friends are links into /usr. */
static void link_merged_usr(void)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib64" };
	char target[32], path[64];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(target, sizeof target, "usr/%s", names[i]);
		snprintf(path, sizeof path, NEW "/%s", names[i]);
		if (symlink(target, path))
			die("symlink %s", path);
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		die("write %s", path);
}

/* An /etc of our own: nothing of the host's users, names or resolvers reaches the guest. */
static void make_etc(void)
{
	make_dir(NEW "/etc", 0755);
	mount_new("tmpfs", NEW "/etc", 0, "mode=0755");
	write_file(NEW "/etc/passwd",
		   "root:x:0:0:root:/root:/bin/sh\n"
		   "browser:x:1000:1000:browser:/tmp:/bin/sh\n"
		   "tcpdump:x:100:101::/nonexistent:/usr/sbin/nologin\n"
		   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	write_file(NEW "/etc/group", "root:x:0:\ntcpdump:x:101:\nbrowser:x:1000:\nnogroup:x:65534:\n");
	write_file(NEW "/etc/nsswitch.conf",
		   "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n");
	write_file(NEW "/etc/hosts", "127.0.0.1 localhost\n");
	write_file(NEW "/etc/hostname", "guest\n");
	write_file(NEW "/etc/machine-id", "00000000000000000000000000000001\n");
	write_file(NEW "/etc/services", "domain 53/udp\ndomain 53/tcp\nhttp 80/tcp\n");
	write_file(NEW "/etc/resolv.conf", "");
	mount_host(STAGE "bundle/etc/fonts", NEW "/etc/fonts", MS_RDONLY);
}

static void make_dev(void)
{
	make_dir(NEW "/dev", 0755);
	mount_new("devtmpfs", NEW "/dev", 0, NULL);
	make_dir(NEW "/dev/pts", 0755);
	make_dir(NEW "/dev/shm", 01777);
	mount_new("devpts", NEW "/dev/pts", 0, "newinstance,ptmxmode=0666");
	mount_new("tmpfs", NEW "/dev/shm", 0, "mode=1777");
	if (symlink("/proc/self/fd", NEW "/dev/fd") && errno != EEXIST)
		die("symlink /dev/fd");
}

static void make_root(void)
{
	static const char *const volatile_dirs[] = { "tmp", "run", "var" };
	char path[64];

	mount_new("tmpfs", NEW, 0, "mode=0755");
	mount_host(STAGE "usr", NEW "/usr", MS_RDONLY);
	link_merged_usr();
	make_etc();
	make_dev();
	make_dir(NEW "/proc", 0555);
	mount_new("proc", NEW "/proc", 0, NULL);
	make_dir(NEW "/sys", 0555);
	mount_new("sysfs", NEW "/sys", 0, NULL);
	for (size_t i = 0; i < sizeof volatile_dirs / sizeof *volatile_dirs; i++) {
		snprintf(path, sizeof path, NEW "/%s", volatile_dirs[i]);
		make_dir(path, 0755);
		mount_new("tmpfs", path, 0, i == 0 ? "mode=1777" : "mode=0755");
	}
	make_dir(NEW "/root", 0700);
	make_dir(NEW "/run/netns", 0755);
	make_dir(NEW "/var/log", 0755);
	make_dir(NEW "/var/lib", 0755);
	make_dir(NEW "/ff", 0755);
	mount_host(STAGE "bundle", NEW "/ff/bundle", MS_RDONLY);
}

static void enter_root(void)
{
	make_dir(NEW "/old", 0700);
	if (syscall(SYS_pivot_root, NEW, NEW "/old") || chdir("/"))
		die("pivot_root");
	if (umount2("/old", MNT_DETACH) || rmdir("/old"))
		die("leave the old root");
}

/* For what the harness opens to itself; every network of the lab has a loopback of its own. */
static void raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request))
		die("raise lo");
	close(any);
}

/* Wait until the program is ready, and have it go on, in this guest or in another one. */
static void go_on(int ready, int go)
{
	char byte;

	/* It may have ended instead. */
	if (read(ready, &byte, 1) != 1)
		return;
	close(ready);
	/* EINVAL: a kernel without images. */
	if (syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		    LINUX_REBOOT_CMD_SW_SUSPEND, NULL) && errno != EINVAL)
		die("image");
	mount_host(STAGE "page", "/ff/page", MS_RDONLY);
	mount_host(STAGE "out", "/ff/out", 0);
	if (write(go, &byte, 1) != 1)
		die("go on");
	close(go);
}

static int run(char *const argv[])
{
	static char *const environment[] = {
		"PATH=/usr/sbin:/usr/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC",
		"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", "PYTHON_COLORS=0",
		SAME_PROCESSOR, NULL,
	};
	int status, ready[2], go[2];
	pid_t child, ended;

	if (pipe2(ready, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		setsid();
		if (dup2(go[0], STDIN_FILENO) < 0 || dup2(ready[1], READY) < 0)
			die("dup2");
		execve(argv[0], argv, environment);
		die("exec %s", argv[0]);
	}
	close(ready[1]);
	close(go[0]);
	go_on(ready[0], go[1]);
	do
		ended = wait(&status);
	while (ended != child && (ended > 0 || errno == EINTR));
	return status;
}

/*
 * A kernel with CONFIG_DEBUG_KMEMLEAK says on its console what has leaked, once all programs have
 * ended: what is older than 5 s, has not changed since the scan before, and may have to be found
 * twice (mm/kmemleak.c).  In virtual time that is no wait.
 */
static void find_leaks(void)
{
	static const char file[] = "/sys/kernel/debug/kmemleak", scan[] = "scan";
	static const char verbose[] = "/sys/module/kmemleak/parameters/verbose";
	int fd;

	if (mount("none", "/sys/kernel/debug", "debugfs", 0, NULL))
		return; /* a kernel without debugfs */
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	write_file(verbose, "Y");
	puts("guest init: " LEAKS);
	fflush(stdout);
	for (int scans = 0; scans < 3; scans++) {
		sleep(6);
		if (write(fd, scan, sizeof scan - 1) < 0)
			die("write %s", file);
	}
	close(fd);
}

/* The words behind "--" on the kernel's command line are the program's. */
int main(int count, char **words)
{
	char *guest[] = {
		"/usr/bin/python3", "-P", "-s", "-S", "/ff/bundle/guest.py",
		count > 1 ? words[1] : NULL, NULL,
	};
	int status;

	make_root();
	enter_root();
	raise_loopback();
	status = run(guest);
	if (WIFSIGNALED(status))
		printf("guest init: the program was ended by signal %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		printf("guest init: the program ended with status %d\n", WEXITSTATUS(status));
	fflush(stdout);
	find_leaks();
	halt();
}
