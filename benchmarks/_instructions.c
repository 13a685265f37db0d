// A plug-in for QEMU that prints the number of executed instructions at each call to getppid.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

// The declarations that this file needs from qemu-plugin.h, which some packages of QEMU lack.
typedef uint64_t Id;
typedef void Translated(Id, void* block);
typedef void Called(Id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t, uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(Id, Translated*);
void qemu_plugin_register_vcpu_tb_exec_inline(void* block, int add, void* to, uint64_t what);
void qemu_plugin_register_vcpu_syscall_cb(Id, Called*);
size_t qemu_plugin_tb_n_insns(const void* block);

enum { kAdd = 0, kGetppid = 173 };  // 173 on 64-bit Arm

int qemu_plugin_version = 1;
static uint64_t count;

static void translated(Id id, void* block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &count, qemu_plugin_tb_n_insns(block));
}

static void called(Id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == kGetppid) fprintf(stderr, "count %" PRIu64 "\n", count);
}

int qemu_plugin_install(Id id, const void* info, int n, char** arguments) {
    (void)info, (void)n, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
