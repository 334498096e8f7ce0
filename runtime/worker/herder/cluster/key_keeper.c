/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's session keys: a new one when there is none, when the newest is too old, or when it
 * is not of the configured kind. Everybody takes the newest from the config topic. Looked at after
 * each round, at each key that is read, and when one is due.
 * Spec: group-protocol 13, KIP-507. Loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/herder/cluster/signature.h"

#define AGAIN_MS 1000 /* after a key that could not be written */

static void on_due(void *arg)
{
    key_keeper_look(arg);
}

static void on_written(void *arg, const struct mr_error *err)
{
    struct distributed *d = arg;

    d->key_writing = false;
    if (d->closing)
        return;
    if (err == NULL) {
        key_keeper_look(d);
        return;
    }
    log_warn("the new session key could not be written, and is tried again: %s", err->text);
    loop_timer_start(d->parts.loop, &d->key_timer, AGAIN_MS, on_due, d);
}

static void rotate(struct distributed *d)
{
    struct config_session_key key;
    struct mr_error err = {0};

    if (signature_new_key(&d->parts.config->cluster, clock_wall_ms(), &key, &err) != 0) {
        log_error("no session key: %s", err.text);
        return;
    }
    log_info("writes a new session key for calls between workers");
    d->key_writing = true;
    cluster_store_put_session_key(d->store, &key, on_written, d);
}

void key_keeper_look(struct distributed *d)
{
    int64_t due;

    loop_timer_cancel(&d->key_timer);
    if (!d->leads || d->kind != CONNECT_SESSIONED || d->key_writing || d->closing)
        return;
    due = signature_key_due_ms(config_state_session_key(distributed_config(d)),
                               &d->parts.config->cluster, clock_wall_ms());
    if (due == 0)
        rotate(d);
    else if (due > 0)
        loop_timer_start(d->parts.loop, &d->key_timer, due, on_due, d);
}
