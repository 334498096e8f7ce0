// SPDX-License-Identifier: Apache-2.0
// HelloCpp: a sink in C++17 that counts words. Designated initialisers are C++20, so a function fills the table.
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

// Whatever a newer Millrace adds to a table stays zero.
constexpr mr_sink table()
{
    mr_sink sink{};

    sink.size = sizeof(mr_sink);
    sink.kind = MR_PLUGIN_SINK;
    sink.name = "HelloCpp";
    sink.version = "1.0";
    sink.doc = "Counts words";
    sink.state_size = sizeof(State);
    sink.start = start;
    sink.put = put;
    sink.stop = stop;
    return sink;
}

constexpr mr_sink hello_cpp_plugin = table();

} // namespace

MR_MODULE(MR_PLUGIN(hello_cpp))
