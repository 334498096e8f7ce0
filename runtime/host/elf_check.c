/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a shared object by its ELF header and program headers before the dynamic linker opens it.
 *
 * Called by plugin_load on whatever thread loads. dlopen maps the segments that the headers name
 * without asking whether the file is that long, so a library that was cut off by a full disk or a
 * broken copy would end the process with SIGBUS. The judging part is pure and reads nothing outside
 * of the bytes it was given. */
#include "host/elf_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_MAX (64u * 1024) /* bytes in which the program headers must lie */

/* The class of ELF that this build is: the fields read below have its widths. */
#if UINTPTR_MAX > 0xffffffffu
#define OUR_CLASS ELFCLASS64
typedef Elf64_Ehdr elf_head;
typedef Elf64_Phdr elf_segment;
#else
#define OUR_CLASS ELFCLASS32
typedef Elf32_Ehdr elf_head;
typedef Elf32_Phdr elf_segment;
#endif

static const struct {
    uint16_t machine;
    const char *name;
} machine_names[] = {
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},   {EM_ARM, "arm"},
    {EM_RISCV, "riscv"},   {EM_PPC64, "ppc64"},     {EM_S390, "s390x"},
};

static const char *machine_name(uint16_t machine)
{
    for (size_t i = 0; i < sizeof(machine_names) / sizeof(machine_names[0]); i++)
        if (machine_names[i].machine == machine)
            return machine_names[i].name;
    return "another machine";
}

static int check_ident(const unsigned char *head, size_t len,
                       const struct elf_check_machine *machine, struct mr_error *err)
{
    if (len < EI_NIDENT || memcmp(head, ELFMAG, SELFMAG) != 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "not an ELF file");
    if (head[EI_CLASS] != machine->bits)
        return mr_fail(err, MR_ERR_PROTOCOL, "built for %s bits, this Millrace has %s",
                       head[EI_CLASS] == ELFCLASS64   ? "64"
                       : head[EI_CLASS] == ELFCLASS32 ? "32"
                                                      : "an unknown number of",
                       machine->bits == ELFCLASS64 ? "64" : "32");
    if (head[EI_DATA] != machine->order)
        return mr_fail(err, MR_ERR_PROTOCOL, "built for a machine of the other byte order");
    if (len < sizeof(elf_head) || head[EI_CLASS] != OUR_CLASS)
        return mr_fail(err, MR_ERR_PROTOCOL, "truncated ELF file: its header is not complete");
    return 0;
}

static int check_segment(const elf_segment *segment, size_t number, uint64_t file_size,
                         struct mr_error *err)
{
    uint64_t end = (uint64_t)segment->p_offset + segment->p_filesz;

    if (segment->p_type != PT_LOAD && segment->p_type != PT_DYNAMIC)
        return 0;
    if (end < segment->p_offset || end > file_size)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "truncated ELF file: segment %zu ends at byte %llu of a file of %llu",
                       number, (unsigned long long)end, (unsigned long long)file_size);
    return 0;
}

static int check_segments(const unsigned char *head, size_t len, uint64_t file_size,
                          const elf_head *elf, struct mr_error *err)
{
    uint64_t end = (uint64_t)elf->e_phoff + (uint64_t)elf->e_phnum * sizeof(elf_segment);
    bool dynamic = false;

    if (elf->e_phnum == 0 || elf->e_phentsize != sizeof(elf_segment))
        return mr_fail(err, MR_ERR_PROTOCOL, "damaged ELF file: it has no usable program headers");
    if (elf->e_phoff > file_size || end > file_size)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "truncated ELF file: its program headers end at byte %llu of a file of %llu",
                       (unsigned long long)end, (unsigned long long)file_size);
    if (end > len)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "damaged ELF file: its program headers end at byte %llu",
                       (unsigned long long)end);
    for (size_t i = 0; i < elf->e_phnum; i++) {
        elf_segment segment;

        memcpy(&segment, head + elf->e_phoff + i * sizeof(segment), sizeof(segment));
        if (check_segment(&segment, i, file_size, err) != 0)
            return err == NULL ? MR_ERR_PROTOCOL : err->code;
        dynamic = dynamic || segment.p_type == PT_DYNAMIC;
    }
    return dynamic ? 0
                   : mr_fail(err, MR_ERR_PROTOCOL,
                             "an ELF file, but no shared object: nothing in it to link by");
}

int elf_check_head(const unsigned char *head, size_t len, uint64_t file_size,
                   const struct elf_check_machine *machine, struct mr_error *err)
{
    elf_head elf;
    int rc = check_ident(head, len, machine, err);

    if (rc != 0)
        return rc;
    memcpy(&elf, head, sizeof(elf));
    if (elf.e_machine != machine->machine)
        return mr_fail(err, MR_ERR_PROTOCOL, "built for %s, this Millrace is for %s",
                       machine_name(elf.e_machine), machine_name(machine->machine));
    if (elf.e_type != ET_DYN)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "an ELF file, but no shared object: link it with -shared");
    return check_segments(head, len, file_size, &elf, err);
}

/* Bytes read from the front of a file, or a negative code. Directories, pipes and devices are
 * refused unread. */
static ssize_t read_head(const char *path, unsigned char *head, size_t size, uint64_t *file_size,
                         struct mr_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n = 0;

    if (fd < 0)
        return err_errno(err, "cannot be read");
    if (fstat(fd, &st) != 0)
        n = err_errno(err, "cannot be read");
    else if (!S_ISREG(st.st_mode))
        n = mr_fail(err, MR_ERR_IO, "not a file");
    else if ((n = pread(fd, head, size, 0)) < 0)
        n = err_errno(err, "cannot be read");
    else
        *file_size = (uint64_t)st.st_size;
    close(fd);
    return n;
}

static int own_machine(struct elf_check_machine *out, struct mr_error *err)
{
    unsigned char head[sizeof(elf_head)];
    uint64_t size;
    ssize_t n = read_head("/proc/self/exe", head, sizeof(head), &size, err);
    elf_head elf;

    if (n < (ssize_t)sizeof(elf)) {
        err_prefix(err, "/proc/self/exe");
        return mr_fail(err, MR_ERR_IO, "/proc/self/exe: too short");
    }
    memcpy(&elf, head, sizeof(elf));
    *out = (struct elf_check_machine){
        .bits = head[EI_CLASS], .order = head[EI_DATA], .machine = elf.e_machine};
    return 0;
}

int elf_check_file(const char *path, struct mr_error *err)
{
    struct elf_check_machine machine;
    unsigned char *head;
    uint64_t file_size = 0;
    ssize_t n;
    int rc;

    rc = own_machine(&machine, err);
    if (rc != 0)
        return rc;
    head = malloc(HEAD_MAX);
    if (head == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    n = read_head(path, head, HEAD_MAX, &file_size, err);
    rc = n < 0 ? (int)n : elf_check_head(head, (size_t)n, file_size, &machine, err);
    free(head);
    return rc;
}
