/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of one connector that are this worker's: any subset of its numbers. Each has its
 * configuration, its state, and how it stands with the host process; several may be stopping at
 * once. Whether there is a host is lifecycle.c's business.
 * Owner: the worker's loop. */
#ifndef WORKER_TASK_LIFE_H
#define WORKER_TASK_LIFE_H

#include "base/props.h"
#include "model/state.h"

struct supervisor;

/* What follows when a stop that is under way is over. */
enum task_life_stop {
    TASK_LIFE_GOES_ON, /* no stop is under way */
    TASK_LIFE_AGAIN,   /* started again */
    TASK_LIFE_LEAVES   /* this worker's no more */
};

struct task_life {
    int number;
    struct props config;
    int64_t generation; /* of the set of task configurations that this one is of */
    enum state state;
    char *trace; /* NULL none */
    bool alive;  /* its host runs it: not FAILED or UNASSIGNED since it was started */
    bool failed; /* by an error of its own */
    bool open;   /* who ran it last died with it, as far as is known here, and it has not run since:
                    a transaction may be open */
    enum task_life_stop stop;
};

/* conn, sup, told: set once by the owner, borrowed. told: a state changed; may be NULL. */
struct task_lives {
    const char *conn;
    struct supervisor *sup;
    void (*told)(void *arg, int task, enum state state, const char *trace);
    void *arg;
    struct task_life *list; /* by number, ascending */
    size_t count;
};

void task_life_forget(struct task_lives *tasks); /* none is left */
/* NULL: not this worker's. Valid until the next put or remove. */
struct task_life *task_life_find(const struct task_lives *tasks, int number);
/* The task of this number with this configuration, copied: a known one keeps its state, a new one
 * is UNASSIGNED. */
struct task_life *task_life_put(struct task_lives *tasks, int number, const struct props *config,
                                int64_t generation);
void task_life_remove(struct task_lives *tasks, int number);
/* Exactly tasks 0 to count - 1, with these configurations. */
void task_life_replace(struct task_lives *tasks, const struct props *configs, size_t count);
/* Are these tasks 0 to count - 1 with these configurations? */
bool task_life_same(const struct task_lives *tasks, const struct props *configs, size_t count);
bool task_life_any_alive(const struct task_lives *tasks);
bool task_life_any_stopping(const struct task_lives *tasks);

/* The numbers of those that are open and not alive, into room for all; then they are not. */
size_t task_life_take_open(struct task_lives *tasks, int32_t *numbers);

/* Trace: copied; NULL none. */
void task_life_show(struct task_lives *tasks, struct task_life *task, enum state state,
                    const char *trace);
/* But those that failed by themselves. */
void task_life_show_all(struct task_lives *tasks, enum state state, const char *trace);

/* To a host that serves; one that is spent (supervisor_spent) is ended instead: `died` follows, and
 * the task is to start with what comes then. */
void task_life_start(struct task_lives *tasks, struct task_life *task, enum target_state target);
void task_life_start_idle(struct task_lives *tasks, enum target_state target);
void task_life_stop(struct task_lives *tasks, struct task_life *task, enum task_life_stop then);
void task_life_target(struct task_lives *tasks, enum target_state target);

/* Everything ends: those that were to start again do so with whatever follows. */
void task_life_draining(struct task_lives *tasks);
/* There is no host any more. Those that were leaving have left; `failed` of those that were
 * stopping is forgotten. */
void task_life_hostless(struct task_lives *tasks);
/* The host says so. */
void task_life_on_state(struct task_lives *tasks, struct task_life *task, enum state state,
                        const char *trace);

#endif
