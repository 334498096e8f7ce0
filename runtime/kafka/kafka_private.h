/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share, and nobody else sees. */
#ifndef KAFKA_KAFKA_PRIVATE_H
#define KAFKA_KAFKA_PRIVATE_H

#include "base/buf.h"
#include "base/jaas.h"
#include "base/java_pattern.h"
#include "base/map.h"
#include "base/pem.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"

#include <stdatomic.h>

#include <librdkafka/rdkafka.h>

/* --- client_map.c: one run of the mapping ----------------------------------------------------- */

struct client_map {
    enum client_kind kind;
    struct props java; /* as given, blanks around values trimmed, nulls left out */
    struct props *out;
    rd_kafka_conf_t *probe; /* takes every setting first: the library's own check */
    client_conf_warn warn;
    void *arg;
    struct mr_error *err;
    bool given;   /* the value at hand is the user's, not a default: worth a warning */
    bool blind;   /* no file that a setting names is looked into */
    bool invalid; /* the error is a value that Kafka's own client would not take either */
};

int client_map_init(struct client_map *m, const struct props *java);
void client_map_deinit(struct client_map *m);
/* The user's value of a Java name, or NULL. Borrowed from m. */
const char *client_map_get(const struct client_map *m, const char *java);
/* Set a librdkafka name on behalf of a Java name. A name that this librdkafka lacks is remarked on
 * and left out. */
int client_map_put(struct client_map *m, const char *java, const char *rdkafka, const char *value);
/* Tell the caller that a setting has no effect or another one than asked. */
MR_PRINTF(3, 4)
void client_map_remark(struct client_map *m, const char *java, const char *fmt, ...);
/* MR_ERR_CONFIG: "Invalid value V for configuration K: why". Secrets are not shown. */
int client_map_invalid(struct client_map *m, const char *java, const char *value, const char *why);
bool client_map_long(const char *text, int64_t *out); /* a whole decimal number */
/* Next item of a comma separated list, blanks trimmed, empty items skipped; false at the end. */
bool client_map_item(const char **list, const char **item, size_t *len);
bool client_map_is(const char *item, size_t len, const char *name); /* ignoring case */

/* What a consumer fetches ahead at most, whatever the number of partitions: librdkafka stops
 * fetching above one of them. */
#define CLIENT_QUEUED_MESSAGES 20000
#define CLIENT_QUEUED_KBYTES 16384

bool client_map_given(const struct client_map *m, const char *java); /* set, and not empty */

/* Settings without a counterpart. fine: values, or simple names of Kafka's own classes, that change
 * nothing; comma separated. */
enum client_map_verdict { CLIENT_MAP_REFUSED, CLIENT_MAP_REMARKED };
struct client_map_rule {
    const char *java;
    enum client_map_verdict verdict;
    const char *fine;
    const char *text;
};
int client_map_rules(struct client_map *m, const struct client_map_rule *rules, size_t count);
/* MR_ERR_CONFIG: "Configuration K can't be honoured: text". */
int client_map_refuse(struct client_map *m, const char *java, const char *text);
/* Refuse a setting that needs something this build of librdkafka lacks. */
int client_map_feature(struct client_map *m, const char *java, const char *feature,
                       const char *what);

/* --- client_translate.c: the words of the table ----------------------------------------------- */

struct client_row;
typedef int client_translation(struct client_map *m, const struct client_row *row,
                               const char *value);

struct client_row {
    const char *java;
    const char *rdkafka;
    client_translation *map;
    int64_t min; /* what Java takes */
    int64_t max;
    int64_t lib_min; /* what librdkafka takes: values beyond are moved to the edge, with a remark */
    int64_t lib_max;
    const char *unset; /* the value when the user gives none; NULL: librdkafka's own default */
    const char *note;
};

client_translation client_translate_number, client_translate_text, client_translate_bool,
    client_translate_nothing, client_translate_lost, client_translate_bootstrap,
    client_translate_dns, client_translate_request_timeout, client_translate_metadata_age,
    client_translate_backoff_max, client_translate_idle, client_translate_acks,
    client_translate_idempotence, client_translate_delivery_timeout, client_translate_compression,
    client_translate_level, client_translate_buffer_memory, client_translate_partitioner,
    client_translate_serializer, client_translate_reset, client_translate_isolation,
    client_translate_auto_commit, client_translate_max_poll, client_translate_heartbeat,
    client_translate_fetch_max, client_translate_group_protocol, client_translate_assignors;

const struct client_conf_clash *client_translate_clash(const struct client_map *m);

/* --- client_table.c: the settings that map one by one ----------------------------------------- */

int client_table_apply(struct client_map *m);
const char *const *client_table_names(enum client_kind kind);

/* --- client_security.c, client_tls.c: security.protocol, sasl.* and ssl.*, as a whole --------- */

int client_security_apply(struct client_map *m);
int client_tls_apply(struct client_map *m);

/* --- client_token.c: OAUTHBEARER with tokens of an endpoint ----------------------------------- */

/* In the text of a failure: no token ever came, and none will. */
#define CLIENT_TOKEN_REFUSED "refused"
/* What it takes to fetch them, from Java's settings and the login module's options. */
int client_token_apply(struct client_map *m, const struct props *jaas);
/* settings: librdkafka's, mapped. Has the client fetch tokens when they say so. */
void client_token_prepare(rd_kafka_conf_t *conf, const struct props *settings);
bool client_token_wanted(const rd_kafka_conf_t *conf);
int client_token_begin(rd_kafka_t *rk, struct mr_error *err); /* after rd_kafka_new, when wanted */

/* --- kafka_error.c ---------------------------------------------------------------------------- */

/* What an error of librdkafka means for a record that was produced, for a group consumer, and for
 * the client as such. */
int kafka_error_produce(rd_kafka_resp_err_t code);
int kafka_error_consume(rd_kafka_resp_err_t code, const char *text);
/* Authentication, TLS certificates, fatal. */
bool kafka_error_hopeless(rd_kafka_resp_err_t code, const char *text);
/* A text of librdkafka's as our user may read it: Java's names, no bookkeeping, a hint where one
 * helps. */
void kafka_error_text(const char *text, char *out, size_t size);

/* Before 2.6.1 the answer of a SCRAM login was wrong in a way that only newer brokers mind. */
#define KAFKA_SCRAM_VERSION 0x020601ff
#define KAFKA_SCRAM_TEXT \
    "newer brokers (seen on Kafka 4.3.1) refuse SCRAM logins of librdkafka before 2.6.1 as " \
    "invalid credentials: use a newer librdkafka, or PLAIN over TLS"

/* --- kafka_handle.c --------------------------------------------------------------------------- */

/* A conf from Java properties, with logging set to base/log. NULL with err. */
rd_kafka_conf_t *kafka_handle_conf(enum client_kind kind, const struct props *java,
                                   client_conf_warn warn, void *arg, struct mr_error *err);
/* rd_kafka_new, conf is taken. NULL with err (MR_ERR_CONFIG). */
rd_kafka_t *kafka_handle_new(enum client_kind kind, rd_kafka_conf_t **conf, struct mr_error *err);

/* --- record_tail.c ---------------------------------------------------------------------------- */

/* Of a message's value as it lies in librdkafka's fetch buffer, 1 to 2^31 - 1 bytes: true when it
 * is of the newest format and has no headers. Reads the bytes before it and the one behind it. */
bool record_tail_is_bare(const void *value, size_t len);

/* --- producer.c, producer_rest.c, producer_txn.c, producer_txn_offsets.c ---------------------- */

struct producer_topic {
    rd_kafka_topic_t *rkt;
    int32_t partitions; /* the most that brokers, or reports, ever told of; 0: none yet */
    int64_t asked_ms;   /* when they were asked last; 0: never */
};

/* A transaction as the broker saw it; see producer_txn.c. */
struct producer_txn {
    atomic_uint ends_sent; /* EndTxn requests; librdkafka's threads count */
    atomic_uint ends_bad;  /* answers to them that were none, or errors */
    bool ending;           /* a commit or abort was begun and gave MR_AGAIN */
    unsigned sent_before;
    unsigned bad_before;
    struct producer_txn_call *call; /* offsets are being added; NULL none */
    size_t records;                 /* handed over since begin */
    bool open;                      /* begun, and neither committed nor aborted */
    bool tainted;
};

/* See producer_rest.c. */
struct producer_rest {
    bool wanted;      /* it is idempotent */
    bool patient;     /* it is transactional, and rests in long stalls only */
    int timer;        /* -1: not wanted */
    int64_t due_ms;   /* the next look; 0: none */
    int64_t heard_ms; /* the newest report, or when it began to watch */
    int64_t asked_ms; /* when topics were asked for last, in a long rest */
    int64_t long_ms;  /* when it was resumed for a long moment last */
    bool confirmed;   /* there was a report once */
    bool resting;
};

struct producer {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue; /* the main one: reports and errors */
    int rung;                /* eventfd: something is in it */
    int fd;                  /* epoll: `rung`, and the timer of `rest` */
    struct producer_rest rest;
    size_t in_flight; /* sent, report not walked */
    struct map *topics;
    size_t max_bytes; /* max.request.size, for texts */
    char trouble[512];
    bool fatal;
    struct producer_txn txn;
};

#define PRODUCER_REST_FROM 5                /* records under way */
int producer_rest_open(struct producer *p); /* -1: errno */
void producer_rest_close(struct producer *p);
void producer_rest_watch(struct producer *p); /* so many are */
void producer_rest_look(struct producer *p,
                        bool heard); /* reports were walked, or were not there */

/* Before the handle is made: count the ends of transactions that leave. */
void producer_txn_watch(struct producer *p, rd_kafka_conf_t *conf);
/* Before the handle goes, whose transaction may be open: to be ended by nobody. */
void producer_txn_abandon(struct producer *p);
/* error: of a call about transactions, taken; NULL: it went well. As such calls return, with err
 * filled but for MR_AGAIN. what: the words before it. */
int producer_txn_result(struct producer *p, const char *what, rd_kafka_error_t *error,
                        struct mr_error *err);
/* Offsets are still being added; an answer that nobody has asked for since is thrown away. */
bool producer_txn_offsets_busy(struct producer *p);
/* The producer is to be freed. true: offsets are still being added, and it will be when that is
 * over, on a thread of its own. */
bool producer_txn_offsets_leave(struct producer *p);
/* librdkafka takes no records now: MR_ERR_STATE or MR_ERR_CLOSED, and why. */
int producer_txn_broken(struct producer *p, struct mr_error *err);

/* --- topic_admin.c, for group_offsets.c ------------------------------------------------------- */

struct topic_admin;

rd_kafka_t *topic_admin_client(const struct topic_admin *admin);
/* A request's own options and queue (which is empty: a late answer to the one before finds nobody),
 * then its answer: NULL with err. */
rd_kafka_AdminOptions_t *topic_admin_options(struct topic_admin *admin, rd_kafka_admin_op_t op,
                                             int64_t timeout_ms);
rd_kafka_queue_t *topic_admin_queue(struct topic_admin *admin);
rd_kafka_event_t *topic_admin_await(struct topic_admin *admin, int64_t timeout_ms,
                                    struct mr_error *err);
/* text: the broker's own words, or NULL. */
int topic_admin_failed(struct topic_admin *admin, rd_kafka_resp_err_t code, const char *text,
                       struct mr_error *err);

/* --- consumer.c, consumer_group.c, consumer_parts.c ------------------------------------------- */

struct consumer_topic {
    char *name;
    struct consumer_part **parts; /* by partition number; NULL: not assigned */
    size_t cap;
};

/* One assigned partition. */
struct consumer_part {
    struct consumer_topic *topic;
    int32_t number;
    /* Where the owner goes on: asked for, or behind the last message handed out; -1 unknown. */
    int64_t next;
    bool placed;        /* in librdkafka's assignment */
    bool seek_due;      /* librdkafka has not confirmed the position: whatever comes is dropped */
    bool noted;         /* see consumer_note */
    bool held;          /* by consumer_hold: whatever comes is dropped */
    int64_t stall_next; /* see consumer_stall.c: where it stood, since when, and how long it may */
    int64_t stall_ms;
    int64_t stall_wait_ms;
};

/* Partitions that are assigned now, in order of assignment. */
struct consumer_parts {
    struct map *topics; /* name → struct consumer_topic; never shrinks: names are lent out */
    struct consumer_part **items;
    size_t count;
    size_t cap;
};

/* A change of the assignment that librdkafka has announced and waits for. */
enum consumer_change { CHANGE_NONE, CHANGE_ASSIGN, CHANGE_REVOKE };

/* See consumer_gone.c. */
struct consumer_gone {
    bool asking;
    rd_kafka_topic_t **topics; /* NULL: not held */
    size_t count;
    uint64_t shape; /* of the last answer, 0 none */
    int looks;      /* that librdkafka is still to take at its subscription */
    int64_t due_ms; /* of the next question */
};

/* See consumer_match.c. */
struct consumer_match {
    struct java_pattern *pattern; /* NULL: the subscription has none of these */
    int64_t each_ms;              /* metadata.max.age.ms */
    int64_t looked_ms;
    bool failed; /* the newest look */
};

struct consumer {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;   /* messages, errors, rebalances */
    rd_kafka_queue_t *commits; /* answers to commits */
    struct consumer_events events;
    void *arg;
    struct consumer_parts parts;
    struct consumer_gone gone;
    struct consumer_match match;
    int64_t stall_due_ms; /* see consumer_stall.c */
    /* Taken away while lent: the owner hears of it in its next poll. */
    struct consumer_partition *lost;
    size_t lost_count;

    enum consumer_change change;
    rd_kafka_topic_partition_list_t *change_list;
    int64_t served_ms;       /* when the queue was last served: a change that is found came after */
    int64_t change_since_ms; /* at the earliest */
    rd_kafka_topic_partition_list_t
        *adopted;   /* librdkafka has these, paused; the owner does not know yet. NULL: none */
    bool seeks_due; /* some partition has seek_due */
    bool paused;
    bool lent;
    bool paused_to_lend;
    bool closing;
    bool may_hang; /* when it is destroyed, see consumer.c */
    bool in_place; /* payloads lie in the fetch buffer, see record_tail.c */
    atomic_bool woken;

    rd_kafka_message_t **held; /* of the batch that the owner has */
    size_t held_count;
    size_t held_cap;
    size_t message_bytes; /* of the average message of the newest batch */
    bool fetched_full;    /* librdkafka's queue was seen so full that it stopped fetching */

    uintptr_t commit_asked; /* number of the newest commit */
    uintptr_t commit_answered;
    int commit_code;
    char commit_text[256];

    int trouble_code; /* the newest error not yet returned, 0 none */
    char trouble[512];
    int64_t max_poll_ms;
    int bound_tries; /* see consumer_place.c */
    int64_t reset;   /* RD_KAFKA_OFFSET_BEGINNING, _END, or _INVALID for none */
    size_t max_records;
    char member[256];
};

#define CONSUMER_NOTE "state" /* an offset's metadata */

void consumer_note_trouble(struct consumer *c, rd_kafka_resp_err_t code, const char *text);

/* consumer_group.c. Thread: the owner's, or the borrower's while lent. */
void consumer_group_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                                 rd_kafka_topic_partition_list_t *list, void *opaque);
/* What is pending: changes, seeks. */
int consumer_group_serve(struct consumer *c, struct mr_error *err);
void consumer_group_serve_lent(struct consumer *c);
void consumer_group_nudge(struct consumer *c);
int consumer_group_pause(struct consumer *c, bool pause, struct mr_error *err);
/* librdkafka's side of it. */
int consumer_group_hold(struct consumer *c, struct consumer_part *part, bool hold,
                        struct mr_error *err);
/* Ours only. */
void consumer_group_move(struct consumer *c, const struct consumer_partition *parts, size_t count);
void consumer_group_seek(struct consumer *c); /* librdkafka to our positions, all partitions */
/* Revoked runs, then the group is left; bounded. */
void consumer_group_leave(struct consumer *c, int64_t deadline_ms);

/* consumer_place.c: fill in where these partitions start; waits at most limit_ms for each of two
 * questions. */
int consumer_place_find(struct consumer *c, rd_kafka_topic_partition_list_t *list, int limit_ms,
                        struct mr_error *err);

/* consumer_gone.c */
/* Any error. true: it tells that a topic is missing. */
bool consumer_gone_note(struct consumer_gone *g, rd_kafka_resp_err_t code);
void consumer_gone_serve(struct consumer *c); /* ask, when it is time */
/* No longer than until then. */
int64_t consumer_gone_wait_ms(const struct consumer_gone *g, int64_t wait_ms);
void consumer_gone_forget(struct consumer_gone *g); /* another subscription */
void consumer_gone_deinit(struct consumer_gone *g); /* before the client is destroyed */

/* consumer_match.c */
/* Subscribe to what a Java expression matches, now and from now on. MR_ERR_CONFIG: it is none. */
int consumer_match_start(struct consumer *c, const char *regex, struct mr_error *err);
void consumer_match_serve(struct consumer *c); /* look, when it is time */
int64_t consumer_match_wait_ms(const struct consumer *c, int64_t wait_ms);
void consumer_match_deinit(struct consumer_match *m);

/* consumer_stall.c */
void consumer_stall_serve(struct consumer *c); /* none came: look, when it is time */
int64_t consumer_stall_wait_ms(const struct consumer *c, int64_t wait_ms); /* no longer than that */

/* consumer_parts.c */
int consumer_parts_init(struct consumer_parts *p);
void consumer_parts_deinit(struct consumer_parts *p);
struct consumer_part *consumer_parts_find(const struct consumer_parts *p, const char *topic,
                                          int32_t number);
struct consumer_part *consumer_parts_add(struct consumer_parts *p, const char *topic,
                                         int32_t number);
void consumer_parts_remove(struct consumer_parts *p, struct consumer_part *part);

#endif
