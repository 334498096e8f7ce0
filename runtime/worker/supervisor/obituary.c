/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a dead host: what ended it, what it was doing, what it said last. Made by child.c
 * once the process is reaped; shown in the worker's log and, through the herder, as the trace of
 * the connector's tasks. Pure.
 *
 * Everything but pid and status comes from memory that plugin code could write to. black_box_read
 * made it safe to print; here it is kept short. */
#include "worker/supervisor/obituary.h"

#include "link/printable.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define WORDS_BYTES 1500 /* of the log lines in the black box */

static void put_duration(struct buf *out, int64_t ms)
{
    if (ms < 1000)
        buf_printf(out, "%" PRId64 " ms", ms);
    else if (ms < 120000)
        buf_printf(out, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
    else
        buf_printf(out, "%" PRId64 " min", ms / 60000);
}

static const struct black_box_slot *find_call(const struct black_box *box, int task)
{
    for (size_t i = 0; task >= 0 && i < BLACK_BOX_SLOTS; i++)
        if (box->slots[i].call[0] != '\0' && box->slots[i].task == task)
            return &box->slots[i];
    return task >= 0 ? NULL : black_box_last_call(box);
}

void obituary_call(const struct black_box *box, int task, int64_t now_ms, struct buf *out)
{
    const struct black_box_slot *slot = box == NULL ? NULL : find_call(box, task);

    if (slot == NULL)
        return;
    if (slot->task < 0)
        buf_puts(out, "the connector");
    else
        buf_printf(out, "task %" PRId32, slot->task);
    buf_printf(out, " was in %s for ", slot->call);
    put_duration(out, now_ms > slot->since_boot_ms ? now_ms - slot->since_boot_ms : 0);
}

static void put_end(const struct obituary *obit, struct buf *out)
{
    const char *name;

    if (obit->exited) {
        buf_printf(out, "exited with code %d", obit->status);
        return;
    }
    name = sigabbrev_np(obit->status);
    buf_printf(out, "was killed by signal %d (SIG%s%s)", obit->status, name == NULL ? "?" : name,
               obit->core ? ", core dumped" : "");
}

void obituary_sentence(const struct obituary *obit, struct buf *out)
{
    bool by_worker = obit->reason != NULL && obit->reason[0] != '\0';
    bool killed = !obit->exited && obit->status == SIGKILL;
    size_t before;

    buf_printf(out, "the host process %" PRId64 " ", obit->pid);
    if (by_worker)
        buf_printf(out, "was ended by the worker because %s", obit->reason);
    else if (killed && obit->lease_over)
        buf_puts(out, "was ended by its own timer because its lease was over");
    else
        put_end(obit, out);
    if (!by_worker && killed && !obit->lease_over)
        buf_puts(out, ", not by the worker (out of memory?)");
    before = out->len;
    buf_puts(out, ", ");
    obituary_call(obit->box, obit->culprit, obit->now_ms, out);
    if (out->len == before + 2) {
        out->len = before;
        out->data[before] = '\0';
    }
}

static void put_lines(struct buf *out, const char *title, const char *text)
{
    bool fresh = true;

    if (text == NULL || text[0] == '\0')
        return;
    buf_printf(out, "\n%s:", title);
    for (; *text != '\0'; text++) {
        if (fresh && *text != '\n')
            buf_puts(out, "\n\t");
        fresh = *text == '\n';
        if (!fresh)
            buf_putc(out, *text);
    }
}

void obituary_trace(const struct obituary *obit, struct buf *out)
{
    char words[WORDS_BYTES] = "";
    size_t from = out->len;

    obituary_sentence(obit, out);
    if (obit->box != NULL)
        black_box_words(obit->box, words, sizeof(words));
    put_lines(out, "Last words", words);
    put_lines(out, "Last lines on stderr", obit->output);
    if (out->len > from)
        printable_clean(out->data + from, out->len - from);
}
