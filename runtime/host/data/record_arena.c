/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of records and the arenas under them.
 *
 * In the flow: a task takes a batch from its pool, the plugin (or the sink's consumer) fills it,
 * converters write into its arena, the producer sends from it without copying, and the batch goes
 * back when every record in it is settled. Thread: the task's.
 *
 * Memory of one batch:
 * - blocks: chained, the first in the list is the one that the arena bumps through. They come from
 *   the pool's cache and go back to it. What is larger than a quarter block gets a block of its
 *   own, freed when the batch is given back.
 * - records: one contiguous run, since plugins step from record to record by a stride. Its
 *   addresses must not move while the plugin holds a record, so the largest run allowed is reserved
 *   as address space, and pages are opened as needed.
 *
 * Invariants: pool->held is the sum of `bytes` over batches that are out; a batch that broke a rule
 * (`over`) still gives usable memory, so that plugin code which checks nothing does no harm before
 * the task fails. */
#include "host/data/record_arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LOGGER "host.data.record_arena"
#include "base/log.h"

#define FIRST_BLOCK ((size_t)16 * 1024)
#define BLOCK ((size_t)256 * 1024)
#define RECORD_PAGES ((size_t)64 * 1024)   /* opened at a time, at least */
#define KEEP_RECORDS ((size_t)1024 * 1024) /* bytes of records that a cached batch may keep */
#define FIRST_HEADERS 4

enum block_kind { BLOCK_FIRST, BLOCK_NORMAL, BLOCK_OWN, BLOCK_SCRAP };

struct block {
    struct block *next;
    size_t size; /* of the data */
    enum block_kind kind;
    uint64_t pad;
    char data[];
};

_Static_assert(sizeof(struct block) % 16 == 0, "block data is aligned");

struct batch_pool {
    const struct mr_host *host;
    size_t budget;
    size_t hard; /* bytes of one batch */
    size_t max_records;
    size_t held;
    size_t out;
    struct batch *cached;
    struct block *blocks; /* cached, BLOCK_NORMAL */
};

static struct batch *batch_of(const struct mr_arena *arena)
{
    return (struct batch *)(void *)((char *)(uintptr_t)arena - offsetof(struct batch, arena));
}

void batch_fault(struct batch *batch, const char *fault)
{
    batch->over = true;
    if (batch->fault == NULL)
        batch->fault = fault;
}

static void charge(struct batch *batch, size_t bytes)
{
    batch->bytes += bytes;
    batch->pool->held += bytes;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static struct block *block_new(enum block_kind kind, size_t size)
{
    struct block *block = malloc(sizeof(*block) + size);

    if (block == NULL)
        return NULL;
    block->kind = kind;
    block->size = size;
    return block;
}

/* Memory for a request that the batch's rules refuse: the plugin may write to it. Pages cost
 * nothing until then. */
static void *scrap_new(struct batch *batch, size_t size)
{
    size_t whole = sizeof(struct block) + size;
    struct block *block = MAP_FAILED;
    struct block *first = batch->blocks;

    if (whole > size)
        block = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) {
        log_write(LOG_FATAL, LOGGER,
                  "the plugin asked for %zu bytes in one piece, which no memory can give", size);
        abort();
    }
    block->kind = BLOCK_SCRAP;
    block->size = size;
    block->next = first->next;
    first->next = block;
    return block->data;
}

static void block_free(struct batch_pool *pool, struct block *block)
{
    switch (block->kind) {
    case BLOCK_NORMAL:
        block->next = pool->blocks;
        pool->blocks = block;
        break;
    case BLOCK_SCRAP:
        munmap(block, sizeof(*block) + block->size);
        break;
    default:
        free(block);
        break;
    }
}

static void arena_use(struct batch *batch, struct block *block)
{
    block->next = batch->blocks;
    batch->blocks = block;
    batch->arena.next = block->data;
    batch->arena.end = block->data + block->size;
}

/* A further normal block becomes the current one. */
static bool arena_grow(struct batch *batch)
{
    struct batch_pool *pool = batch->pool;
    struct block *block = pool->blocks;

    if (block != NULL)
        pool->blocks = block->next;
    else
        block = block_new(BLOCK_NORMAL, BLOCK);
    if (block == NULL)
        return false;
    arena_use(batch, block);
    charge(batch, block->size);
    return true;
}

/* A block for one large piece, behind the current one. */
static void *arena_own(struct batch *batch, size_t size)
{
    struct block *block = block_new(BLOCK_OWN, size);
    struct block *first = batch->blocks;

    if (block == NULL)
        return NULL;
    block->next = first->next;
    first->next = block;
    charge(batch, size);
    return block->data;
}

/* size bytes, or NULL and `over`. */
static void *arena_take(struct batch *batch, size_t size)
{
    struct mr_arena *arena = &batch->arena;
    size_t whole = (size + 7) & ~(size_t)7;
    void *p;

    if (whole >= size && whole <= (size_t)(arena->end - arena->next)) {
        p = arena->next;
        arena->next += whole;
        return p;
    }
    if (whole < size || whole > batch->pool->hard || batch->bytes > batch->pool->hard - whole) {
        batch_fault(batch, "the records of one call take more memory than a batch may hold");
        return NULL;
    }
    if (whole > BLOCK / 4)
        p = arena_own(batch, whole);
    else
        p = arena_grow(batch) ? arena_take(batch, whole) : NULL;
    if (p == NULL)
        batch_fault(batch, "out of memory for records");
    return p;
}

void *record_arena_more(struct mr_arena *arena, size_t size)
{
    struct batch *batch = batch_of(arena);
    void *p = arena_take(batch, size);

    return p != NULL ? p : scrap_new(batch, size);
}

/* --- pool ------------------------------------------------------------------------------------- */

struct batch_pool *batch_pool_new(const struct mr_host *host, size_t budget_bytes,
                                  size_t max_records)
{
    struct batch_pool *pool = calloc(1, sizeof(*pool));

    mr_assert(pool != NULL);
    pool->host = host;
    pool->budget = budget_bytes;
    pool->hard = budget_bytes > BATCH_MAX_BYTES / 2 ? 2 * budget_bytes : BATCH_MAX_BYTES;
    pool->max_records = max_records;
    return pool;
}

static size_t records_reserved(const struct batch *batch)
{
    return batch->record_max * sizeof(struct record);
}

static void batch_free(struct batch *batch)
{
    munmap(batch->pub.records, records_reserved(batch));
    free(batch->blocks); /* the first one, all others went to the pool */
    free(batch);
}

static struct batch *batch_new(struct batch_pool *pool)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    struct block *block = block_new(BLOCK_FIRST, FIRST_BLOCK);
    void *records = MAP_FAILED;

    if (batch != NULL && block != NULL) {
        batch->record_max = pool->hard / sizeof(struct record);
        records = mmap(NULL, records_reserved(batch), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (records == MAP_FAILED) {
        free(batch);
        free(block);
        return NULL;
    }
    batch->pool = pool;
    batch->pub.host = pool->host;
    batch->pub.arena = &batch->arena;
    batch->pub.records = records;
    batch->pub.record_size = sizeof(struct record);
    batch->arena.host = pool->host;
    block->next = NULL;
    batch->blocks = block;
    return batch;
}

void batch_clear_rejects(struct batch *batch)
{
    batch->rejects = NULL;
    batch->last_reject = &batch->rejects;
}

static void batch_reset(struct batch *batch)
{
    struct block *first = batch->blocks;

    batch->pub.count = 0;
    batch->arena.next = first->data;
    batch->arena.end = first->data + first->size;
    batch->next = NULL;
    batch->bytes = 0;
    batch->unsettled = 0;
    batch->end = BATCH_GOES_ON;
    batch->again = false;
    batch->again_ms = 0;
    batch->again_fd = -1;
    batch->over = false;
    batch->fault = NULL;
    batch->topic_count = 0;
    batch_clear_rejects(batch);
}

struct batch *batch_pool_take(struct batch_pool *pool)
{
    struct batch *batch = pool->cached;

    if (pool->held >= pool->budget || pool->out >= BATCH_POOL_MAX)
        return NULL;
    if (batch != NULL)
        pool->cached = batch->next;
    else
        batch = batch_new(pool);
    if (batch == NULL)
        return NULL;
    batch_reset(batch);
    charge(batch, FIRST_BLOCK);
    pool->out++;
    return batch;
}

/* A poll of very many records leaves no more than KEEP_RECORDS behind. */
static void records_shrink(struct batch *batch, size_t keep_bytes)
{
    size_t mapped = batch->record_cap * sizeof(struct record);

    keep_bytes &= ~(RECORD_PAGES - 1);
    if (mapped <= keep_bytes)
        return;
    mapped = (mapped + RECORD_PAGES - 1) & ~(RECORD_PAGES - 1);
    madvise(batch->pub.records + keep_bytes, mapped - keep_bytes, MADV_DONTNEED);
    if (mprotect(batch->pub.records + keep_bytes, mapped - keep_bytes, PROT_NONE) == 0)
        batch->record_cap = keep_bytes / sizeof(struct record);
}

void batch_pool_give(struct batch_pool *pool, struct batch *batch)
{
    struct block *block = batch->blocks;

    mr_assert(batch->pool == pool && pool->out > 0 && pool->held >= batch->bytes);
    pool->held -= batch->bytes;
    pool->out--;
    while (block->kind != BLOCK_FIRST) {
        struct block *next = block->next;

        block_free(pool, block);
        block = next;
    }
    batch->blocks = block;
    while (block->next != NULL) { /* large pieces taken while the first block was the current one */
        struct block *next = block->next;

        block->next = next->next;
        block_free(pool, next);
    }
    records_shrink(batch, KEEP_RECORDS);
    batch->next = pool->cached;
    pool->cached = batch;
}

size_t batch_pool_bytes(const struct batch_pool *pool)
{
    return pool->held;
}

static void blocks_trim(struct batch_pool *pool)
{
    while (pool->blocks != NULL) {
        struct block *block = pool->blocks;

        pool->blocks = block->next;
        free(block);
    }
}

void batch_pool_trim(struct batch_pool *pool)
{
    blocks_trim(pool);
    if (pool->cached == NULL)
        return;
    while (pool->cached->next != NULL) { /* one stays, for the next poll */
        struct batch *batch = pool->cached->next;

        pool->cached->next = batch->next;
        batch_free(batch);
    }
    records_shrink(pool->cached, RECORD_PAGES);
}

void batch_pool_free(struct batch_pool **pool)
{
    struct batch_pool *p = *pool;

    if (p == NULL)
        return;
    mr_assert(p->out == 0);
    blocks_trim(p);
    while (p->cached != NULL) {
        struct batch *batch = p->cached;

        p->cached = batch->next;
        batch_free(batch);
    }
    free(p);
    *pool = NULL;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Open at least one more record; twice as many as before where that is allowed. */
static bool records_grow(struct batch *batch)
{
    size_t have =
        (batch->record_cap * sizeof(struct record) + RECORD_PAGES - 1) & ~(RECORD_PAGES - 1);
    size_t want = have == 0 ? RECORD_PAGES : have * 2;
    size_t room = records_reserved(batch) & ~(RECORD_PAGES - 1);

    if (want > room)
        want = room;
    if (want <= have)
        return false;
    if (mprotect(batch->pub.records + have, want - have, PROT_READ | PROT_WRITE) != 0)
        return false;
    batch->record_cap = want / sizeof(struct record);
    return true;
}

static const char *topic_copy(struct batch *batch, const char *topic)
{
    size_t size = strlen(topic) + 1;
    char *copy = arena_take(batch, size);

    return copy == NULL ? "" : memcpy(copy, topic, size);
}

static const char *topic_known(const struct batch *batch, const char *topic)
{
    for (size_t i = batch->topic_count; i > 0; i--)
        if (batch->topics[i - 1] == topic || strcmp(batch->topics[i - 1], topic) == 0)
            return batch->topics[i - 1];
    return NULL;
}

static const char *topic_note(struct batch *batch, const char *own)
{
    if (batch->topic_count < sizeof(batch->topics) / sizeof(batch->topics[0]) && own[0] != '\0')
        batch->topics[batch->topic_count++] = own;
    return own;
}

/* The batch's own copy of a topic name; equal names are one pointer as long as there are few of
 * them. */
static const char *topic_own(struct batch *batch, const char *topic)
{
    const char *known;

    if (topic == NULL || topic[0] == '\0') {
        batch_fault(batch, "a record without a topic");
        return "";
    }
    known = topic_known(batch, topic);
    return known != NULL ? known : topic_note(batch, topic_copy(batch, topic));
}

/* Room for one more record, or `over`; then the last one is written over, since the call fails
 * anyhow. */
static void records_make_room(struct batch *batch)
{
    if (records_grow(batch))
        return;
    batch_fault(batch, "more records in one call than a batch may hold");
    if (batch->record_cap == 0) {
        log_write(LOG_FATAL, LOGGER, "out of memory: not one page for records");
        abort();
    }
    batch->pub.count = batch->record_cap - 1;
}

struct record *batch_add_borrowed(struct batch *batch, const char *topic)
{
    struct record *rec;

    if (batch->pub.count >= batch->record_cap)
        records_make_room(batch);
    rec = batch_at(batch, batch->pub.count++);
    charge(batch, sizeof(*rec));
    memset(rec, 0, batch->pub.record_size); /* no constant: a call is quicker than what gcc has */
    rec->pub.host = batch->pub.host;
    rec->pub.topic = topic;
    rec->pub.partition = MR_NO_PARTITION;
    rec->pub.timestamp = MR_NO_TIMESTAMP;
    rec->pub.offset = -1;
    rec->pub.header_size = sizeof(struct mr_header);
    rec->batch = batch;
    return rec;
}

void batch_remove_last(struct batch *batch)
{
    batch->pub.count--;
}

struct record *batch_add(struct batch *batch, const char *topic)
{
    return batch_add_borrowed(batch, topic_own(batch, topic));
}

struct mr_record *record_arena_add(struct mr_batch *batch, const char *topic)
{
    return &batch_add((struct batch *)batch, topic)->pub;
}

bool record_arena_full(const struct mr_batch *pub)
{
    const struct batch *batch = (const struct batch *)pub;

    return pub->count >= batch->pool->max_records || batch->bytes >= BATCH_FULL_BYTES;
}

int record_arena_again(struct mr_batch *pub, int64_t ms, int fd)
{
    struct batch *batch = (struct batch *)pub;

    batch->again = true;
    batch->again_ms = ms < 0 && fd < 0 ? 0 : ms;
    batch->again_fd = fd;
    return MR_AGAIN;
}

void record_arena_reject(struct mr_batch *pub, size_t i, const char *text)
{
    struct batch *batch = (struct batch *)pub;
    struct reject *reject;

    if (i >= pub->count || text == NULL) {
        batch_fault(batch, "mr_reject was called for a record that the batch does not have");
        return;
    }
    reject = arena_take(batch, sizeof(*reject));
    text = batch_copy(batch, text, strlen(text) + 1);
    if (reject == NULL || text == NULL)
        return;
    *reject = (struct reject){NULL, i, text};
    *batch->last_reject = reject;
    batch->last_reject = &reject->next;
}

static uint8_t agree(struct batch *batch, uint8_t said, bool commit)
{
    uint8_t end = commit ? BATCH_COMMITS : BATCH_ABORTS;

    if (said != BATCH_GOES_ON && said != end)
        batch_fault(batch, "both commit and abort were asked for at the same record or batch");
    return end;
}

void record_arena_batch_ends(struct mr_batch *pub, bool commit)
{
    struct batch *batch = (struct batch *)pub;

    batch->end = agree(batch, (uint8_t)batch->end, commit);
}

void record_arena_ends(struct mr_record *pub, bool commit)
{
    struct record *rec = (struct record *)pub;

    rec->end = agree(rec->batch, rec->end, commit);
}

/* --- values ----------------------------------------------------------------------------------- */

static bool block_holds(const struct block *block, const char *p, size_t len)
{
    return p >= block->data && len <= block->size && p <= block->data + (block->size - len);
}

bool batch_holds(const struct batch *batch, const void *p, size_t len)
{
    for (const struct block *block = batch->blocks; block != NULL; block = block->next)
        if (block_holds(block, p, len))
            return true;
    return false;
}

void *batch_copy(struct batch *batch, const void *data, size_t len)
{
    void *copy = arena_take(batch, len);

    if (copy == NULL)
        return NULL;
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

void record_arena_key(struct mr_record *pub, struct mr_value v)
{
    pub->key = batch_own(((struct record *)pub)->batch, v);
}

void record_arena_value(struct mr_record *pub, struct mr_value v)
{
    pub->value = batch_own(((struct record *)pub)->batch, v);
}

/* Room for one more header. What stands below header_count is never written again: an array may be
 * shared with the record as it was before a transform. */
static struct mr_header *headers_grow(struct record *rec)
{
    uint32_t count = rec->pub.header_count;
    struct mr_header *old = (struct mr_header *)(uintptr_t)rec->pub.headers;
    struct mr_header *headers;
    uint32_t cap = count < FIRST_HEADERS ? FIRST_HEADERS : count * 2;

    if (count < rec->header_cap)
        return old;
    if (count > UINT32_MAX / 2)
        return NULL;
    headers = arena_take(rec->batch, cap * sizeof(*headers));
    if (headers == NULL)
        return NULL;
    if (count > 0)
        memcpy(headers, old, count * sizeof(*headers));
    rec->header_cap = cap;
    return headers;
}

void record_arena_header(struct mr_record *pub, const char *name, const struct mr_schema *schema,
                         struct mr_value v)
{
    struct record *rec = (struct record *)pub;
    struct batch *batch = rec->batch;
    struct mr_header *headers;
    const char *copy;
    size_t len;

    if (name == NULL) {
        batch_fault(batch, "a header without a name");
        return;
    }
    len = strlen(name);
    copy = batch_copy(batch, name, len + 1);
    headers = headers_grow(rec);
    if (copy == NULL || headers == NULL)
        return;
    headers[pub->header_count] = (struct mr_header){
        .name = copy, .name_len = len, .schema = schema, .value = batch_own(batch, v)};
    pub->headers = headers;
    pub->header_count++;
}

static size_t headers_named(const struct mr_record *rec, const char *name)
{
    size_t n = 0;

    for (uint32_t i = 0; i < rec->header_count; i++)
        n += strcmp(mr_header_at(rec, i)->name, name) == 0;
    return n;
}

size_t record_arena_header_drop(struct mr_record *pub, const char *name)
{
    struct record *rec = (struct record *)pub;
    size_t gone = name == NULL ? 0 : headers_named(pub, name);
    struct mr_header *kept;
    uint32_t n = 0;

    if (gone == 0)
        return 0;
    kept = arena_take(rec->batch, pub->header_count * sizeof(*kept));
    if (kept == NULL)
        return 0;
    for (uint32_t i = 0; i < pub->header_count; i++)
        if (strcmp(mr_header_at(pub, i)->name, name) != 0)
            kept[n++] = *mr_header_at(pub, i);
    rec->header_cap = pub->header_count;
    pub->headers = kept;
    pub->header_count = n;
    return gone;
}

void record_arena_topic(struct mr_record *pub, const char *topic, size_t len)
{
    struct record *rec = (struct record *)pub;
    const char *known;
    char *copy;

    if (topic == NULL || memchr(topic, '\0', len) != NULL) {
        batch_fault(rec->batch, "a transform set a topic that is none");
        return;
    }
    copy = arena_take(rec->batch, len + 1);
    if (copy == NULL)
        return;
    memcpy(copy, topic, len);
    copy[len] = '\0';
    known = topic_known(rec->batch, copy);
    pub->topic = known != NULL ? known : topic_note(rec->batch, copy);
}

/* Interned. Nearly always that of the record before, so its text is compared with that first; such
 * keys live forever. */
static const char *offset_key_own(struct batch *batch, const char *key)
{
    if (key == NULL)
        return NULL;
    if (batch->offset_key == NULL || strcmp(batch->offset_key, key) != 0)
        batch->offset_key = source_partition_key(key);
    return batch->offset_key;
}

/* What can't be stored must not look as if it were: the task would begin anew with each start. */
static void fault_unstorable(struct batch *batch, const struct mr_source_partition *part)
{
    char shown[200];
    char text[300];
    int len = snprintf(text, sizeof(text),
                       "the offset of source partition %s can't be stored: its name is not UTF-8",
                       source_partition_show(part, shown, sizeof(shown)));
    const char *copy = batch_copy(batch, text, (size_t)len + 1);

    if (copy != NULL)
        batch_fault(batch, copy);
}

void record_arena_offset(struct mr_record *pub, const struct mr_source_partition *part,
                         const char *key, int64_t next)
{
    struct record *rec = (struct record *)pub;

    rec->offset_key = part == NULL ? NULL : offset_key_own(rec->batch, key);
    rec->partition = rec->offset_key == NULL ? NULL : part;
    rec->offset_next = next;
    if (rec->partition == NULL)
        batch_fault(rec->batch, "a source offset without a partition or key, with a key that is "
                                "not UTF-8, or too many different ones");
    else if (!part->storable)
        fault_unstorable(rec->batch, part);
}
