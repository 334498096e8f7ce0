/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of a host process. Installed once by host_main, entered by every thread that runs plugin
 * code.
 *
 * Deadly signals: the handler runs on the thread that crashed, on its alternate stack, stores the
 * thread's slot and the signal's number into the black box, and raises the signal again with the
 * default action, so that the worker sees the true exit status. It touches nothing but the box,
 * plain memory, and calls that are async-signal-safe. exit() from a plugin leaves its slot as well,
 * so that the obituary can name the task. Forked children of a plugin: they must not hold the link
 * open, nor write the black box or catch signals in our name.
 *
 * Mutable globals, against the rule: a signal handler and a fork handler have no argument. They are
 * written before other threads exist, or belong to one thread. */
#include "host/thread_guard.h"

#include "base/err.h"
#include "base/thread.h"
#include "link/inherit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define STACK_BYTES (64u * 1024) /* room for the widest register state and a small handler */

static struct black_box *guard_box;
static _Thread_local size_t own_slot = THREAD_GUARD_NO_SLOT;
static _Thread_local void *own_stack;

static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
#define DEADLY_COUNT (sizeof(deadly) / sizeof(deadly[0]))

/* The first thread to die is the culprit; others may follow it before the process is gone. */
static void note_death(int sig)
{
    struct black_box *box = guard_box;

    if (box == NULL || box->deadly_signal != 0 || box->culprit != 0)
        return;
    if (own_slot != THREAD_GUARD_NO_SLOT)
        box->culprit = (int64_t)own_slot + 1;
    box->deadly_signal = sig;
}

/* SA_RESETHAND has restored the default action, SA_NODEFER lets the raised signal in at once. */
static void on_deadly(int sig)
{
    note_death(sig);
    raise(sig);
}

static void on_nudge(int sig)
{
    (void)sig;
}

/* Runs last of all exit handlers, on the thread that called exit(): our own way out is _exit. */
static void on_exit_called(void)
{
    note_death(0);
}

static void set_handler(int sig, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    mr_assert(sigaction(sig, &action, NULL) == 0);
}

static void in_forked_child(void)
{
    sigset_t none;

    for (size_t i = 0; i < DEADLY_COUNT; i++)
        signal(deadly[i], SIG_DFL);
    signal(THREAD_GUARD_NUDGE, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (guard_box != NULL) {
        munmap(guard_box, sizeof(*guard_box));
        guard_box = NULL;
        close(INHERIT_LINK_FD);
        close(INHERIT_BOX_FD);
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void block_the_rest(void)
{
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        sigdelset(&set, deadly[i]);
    sigdelset(&set, THREAD_GUARD_NUDGE);
    mr_assert(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0);
}

void thread_guard_install(struct black_box *box)
{
    guard_box = box;
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        set_handler(deadly[i], on_deadly, SA_ONSTACK | SA_NODEFER | (int)SA_RESETHAND);
    set_handler(THREAD_GUARD_NUDGE, on_nudge, 0);
    set_handler(SIGPIPE, SIG_IGN, 0);
    block_the_rest();
    atexit(on_exit_called);
    pthread_atfork(NULL, NULL, in_forked_child);
}

void thread_guard_enter(size_t slot)
{
    stack_t stack = {.ss_size = STACK_BYTES};

    thread_c_locale();
    own_slot = slot;
    own_stack = malloc(STACK_BYTES);
    if (own_stack == NULL)
        return;
    stack.ss_sp = own_stack;
    sigaltstack(&stack, NULL);
}

void thread_guard_leave(void)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    sigaltstack(&none, NULL);
    free(own_stack);
    own_stack = NULL;
    own_slot = THREAD_GUARD_NO_SLOT;
}
