// SPDX-License-Identifier: Apache-2.0
// HelloCpp: a sink in C++17 that counts words. Designated initialisers are C++20, so the tables are filled by position.
#include <millrace/plugin.h>

#include <map>
#include <new>
#include <sstream>
#include <string>

namespace {

struct Words {
    mr_task *task;
    std::map<std::string, long> counts;
};

// The host gives zeroed memory of `state_size` bytes; what C++ puts there is made in start and unmade in stop. No exception
// may leave a slot.
struct State {
    Words *words;
};

int start(void *self, mr_task *task, mr_error *err)
{
    auto *state = static_cast<State *>(self);

    state->words = new (std::nothrow) Words{task, {}};
    return state->words != nullptr ? MR_OK : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

int put(void *self, mr_batch *in, mr_error *err)
{
    Words &words = *static_cast<State *>(self)->words;

    try {
        for (size_t i = 0; i < mr_batch_count(in); i++) {
            size_t len;
            const char *text = mr_to_text(in->arena, mr_value(mr_record_at(in, i)), &len);
            std::istringstream line(std::string(text, len));

            for (std::string word; line >> word;)
                mr_log(words.task, MR_LOG_INFO, "%s: %ld", word.c_str(), ++words.counts[word]);
        }
        return MR_OK;
    } catch (const std::bad_alloc &) {
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for %zu words", words.counts.size());
    }
}

void stop(void *self)
{
    delete static_cast<State *>(self)->words;
}

const mr_config_key keys[] = {
    // name, type, flags, fallback, doc, choices, has_range, min, max, importance, group, order, width, display_name
    {},
};

const mr_sink hello_cpp_plugin = {
    // size, kind, name, version
    sizeof(mr_sink), MR_PLUGIN_SINK, "HelloCpp", "1.0",
    // key_size, keys, state_size, aliases, doc
    sizeof(mr_config_key), keys, sizeof(State), nullptr, "Counts words",
    // start, put, flush, interrupt, stop, tasks
    start, put, nullptr, nullptr, stop, nullptr,
    // put_atomic, open, close, pre_commit, alter_offsets
    false, nullptr, nullptr, nullptr, nullptr,
};

} // namespace

MR_MODULE(MR_PLUGIN(hello_cpp))
