// A beam search from the first token to the last in one call: what `transduce.search.beam` does step by step with any
// model, for a Transformer's decoder whose blocks are one call as well, or for several such as an ensemble.
//
// Hypotheses are a tree: what two of them share of their past is there once, its keys and values too. A column of these
// that is nobody's past any more is given to a new token.
//
// Shapes: B sentences, K slots of a beam, N live hypotheses of all sentences, C continuations of each, M models,
// D width, V vocabulary, T tokens of the longest output, L words of all shortlists, P tokens of all prefixes.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "choice.h"
#include "decoder.h"
#include "linear.h"
#include "member.h"
#include "numbers.h"
#include "shortlist.h"
#include "top.h"

namespace transduce {

constexpr Index NOBODY = -1;
constexpr Index TOGETHER = 32;         // rows whose logits are in the cache at once
constexpr double LOG_ROUNDING = 1e-3;  // a log-probability may be this much above 0

// What ended hypotheses do to a beam: keep their slots, or are set aside as `transduce.search.set_aside` says.
enum class Stopping : Index { slots, heuristic, complete, never };

// What is wanted of the search, as `transduce.kernels.native.beam` writes it. forces_end: what reaches its limit counts
// as if it ended behind it.
struct Wanted {
    Index start, end, beam, nbest;
    Barred barred;
    Index longest;
    Stopping stopping;
    Index forces_end;
    bool sets_aside() const { return stopping != Stopping::slots; }
};

// A score is log p / ((offset + L) / unit)^alpha.
struct Length {
    double offset, unit, alpha;
    double normalised(double log_probability, Index length) const {
        return log_probability / std::pow((offset + static_cast<double>(length)) / unit, alpha);
    }
};

struct Node {
    Index token, parent, column;
    double value;
};

// parent: which row of the step before each goes on from.
struct Live {
    std::vector<Index> sentence, node, parent;
    std::vector<double> total;
};

// The tokens that outputs of source b begin with: token_P[first_B[b]] to token_P[first_B[b + 1] - 1].
struct Prefixes {
    const Index *token_P, *first_B;  // null = none
    Index count(Index source) const { return first_B ? first_B[source + 1] - first_B[source] : 0; }
    // The token that stands there, NOBODY = any may.
    Index forced(Index source, Index time) const {
        return time < count(source) ? token_P[first_B[source] + time] : NOBODY;
    }
};

// The greatest of x - away, as `top_of_row` gives them; only the `forced` column where there is one.
inline void offered(const float* x, float away, Index columns, Barred barred, Index forced, Index count,
                    double* value_C, Index* column_C) {
    if (forced == NOBODY) return top_of_row(x, away, columns, barred, count, value_C, column_C);
    std::fill_n(value_C, count, -INFINITY);
    std::fill_n(column_C, count, forced);
    value_C[0] = x[forced] - away;
}

// How several models are one: the mean of their probabilities, or of their logarithms, normalised.
enum class Mean : Index { probability, log_probability };

// One that ended or reached its limit. node: of its last token.
struct Over {
    Index node, length;
    double score;
};

// given: the log-probability of its prefix so far. over: what the search found, where it sets aside the best first.
// scores: of those that ended, greatest first.
struct Sentence {
    Index slots;
    double given = 0;
    std::vector<Over> over;
    std::vector<double> scores;
};

class Beam {
  public:
    // Among the words of `lists` alone one model writes, not several.
    Beam(const Reader* readers, const double* epsilons, Index count, Mean mean, Index sources, const Index* limit_B,
         const Wanted& wanted, const Lists& lists, const Prefixes& prefixes, const Length& length, double prune)
        : mean_(mean), limit_B_(limit_B), wanted_(wanted), prefixes_(prefixes), length_(length), prune_(prune),
          sentences_(sources) {
        const Index room = std::min<Index>(32, wanted.longest * wanted.beam);
        members_.reserve(count);
        for (Index m = 0; m < count; ++m) members_.emplace_back(readers[m], epsilons[m], sources, room);
        if (lists.word_L) shortlist_.reset(new Shortlist(members_[0].writer.output, lists, sources));
        for (Index source = 0; source < sources; ++source) {
            sentences_[source].slots = wanted.sets_aside() ? 2 * wanted.beam : wanted.beam;
            nodes_.push_back({wanted.start, NOBODY, NOBODY, 0});
            live_.sentence.push_back(source);
            live_.node.push_back(source);
            live_.parent.push_back(source);
            live_.total.push_back(0);
        }
    }

    // The found hypotheses of each sentence, (B, K, T) with their lengths and scores; returns what is no
    // log-probability, else 0.
    double search(Index* token_BKT, double* value_BKT, Index* length_BK, double* score_BK) {
        for (Index time = 0; time < wanted_.longest && !live_.node.empty(); ++time) {
            step(time);
            for (Index n = 0, rows = live_.node.size(); n < rows; ++n) {
                const double greatest = value_[n * (value_.size() / rows)];
                if (!(greatest <= LOG_ROUNDING)) return greatest;
            }
            Live grown = continued(time + 1);
            const std::vector<std::uint8_t> going =
                wanted_.sets_aside() ? set_aside(grown, time + 1) : collected(grown, time + 1);
            live_ = only(std::move(grown), going);
        }
        for (std::size_t b = 0; b < sentences_.size(); ++b) {
            Index at = b * wanted_.beam;
            for (const Over& each : sentences_[b].over) {
                length_BK[at] = each.length;
                score_BK[at] = each.score;
                spell(each, token_BKT + at * wanted_.longest, value_BKT + at * wanted_.longest);
                ++at;
            }
        }
        return 0;
    }

  private:
    // What each may say next, to value_ and column_.
    void step(Index time) {
        const Index rows = live_.node.size();
        const Looks seen = pasts(time + 1);
        std::vector<Index> column(rows), token(rows);
        for (Index n = 0; n < rows; ++n) {
            column[n] = nodes_[live_.node[n]].column;
            token[n] = nodes_[live_.node[n]].token;
        }
        std::vector<std::vector<float>> hidden;
        for (Member& member : members_) {
            hidden.push_back(
                member.hidden(token, time, live_.sentence.data(), column.data(), live_.parent.data(), seen));
        }
        const Index offers = wanted_.sets_aside() ? 2 * wanted_.beam : wanted_.beam;
        const Index count = std::min(offers, members_[0].writer.output.outputs);
        value_.resize(rows * count);
        column_.resize(rows * count);
        if (shortlist_) {
            offer_listed(hidden[0].data(), rows, count, time);
        } else {
            offer_all(hidden, rows, count, time);
        }
    }

    // Where the keys and values of each one's tokens stand, for the last of which a place is found here.
    Looks pasts(Index length) {
        const Index rows = live_.node.size();
        Looks seen{std::vector<std::int32_t>(rows * length), std::vector<Index>(rows, length), length};
        std::vector<std::uint8_t> used;
        for (Index first = 0, last = 0; first < rows; first = last) {
            used.assign(wanted_.beam * length, 0);
            for (last = first; last < rows && live_.sentence[last] == live_.sentence[first]; ++last) {
                Index node = nodes_[live_.node[last]].parent;
                for (Index place = length - 1; place-- > 0; node = nodes_[node].parent) {
                    seen.place[last * length + place] = static_cast<std::int32_t>(nodes_[node].column);
                    used[nodes_[node].column] = 1;
                }
            }
            Index free = 0;
            for (Index n = first; n < last; ++n) {
                while (used[free]) ++free;
                nodes_[live_.node[n]].column = free;
                seen.place[n * length + length - 1] = static_cast<std::int32_t>(free++);
            }
            for (Member& member : members_) member.store.hold(free);
        }
        return seen;
    }

    void offer_all(const std::vector<std::vector<float>>& hidden_MND, Index rows, Index count, Index time) {
        const Index columns = members_[0].writer.output.outputs, block = std::min(rows, TOGETHER) * columns;
        std::vector<float> logits(block * members_.size());
        for (Index first = 0; first < rows; first += TOGETHER) {
            const Index some = std::min(TOGETHER, rows - first);
            for (std::size_t m = 0; m < members_.size(); ++m) {
                const Member& member = members_[m];
                member.logits(hidden_MND[m].data() + first * member.writer.width, live_.sentence.data() + first, some,
                              logits.data() + m * block);
            }
#pragma omp parallel for schedule(static)
            for (Index n = 0; n < some; ++n) {
                float* row = logits.data() + n * columns;
                const Index at = (first + n) * count, forced = prefixes_.forced(live_.sentence[first + n], time);
                if (members_.size() > 1) {
                    top_of_mean(row, block, columns, forced, count, &value_[at], &column_[at]);
                } else {
                    offered(row, log_sum(row, columns), columns, wanted_.barred, forced, count, &value_[at],
                            &column_[at]);
                }
            }
        }
    }

    // The greatest of the mean of several rows of logits, which lie `apart` and are written over.
    void top_of_mean(float* row, Index apart, Index columns, Index forced, Index count, double* value_C,
                     Index* column_C) const {
        const Index members = members_.size();
        const bool of_logarithms = mean_ == Mean::log_probability;
        for (Index m = 0; m < members; ++m) {
            const float* from = row + m * apart;
            const float away = log_sum(from, columns);
#pragma omp simd
            for (Index v = 0; v < columns; ++v) {
                const float each = of_logarithms ? (from[v] - away) / static_cast<float>(members)
                                                 : exponential(from[v] - away);
                row[v] = m > 0 ? row[v] + each : each;
            }
        }
        offered(row, of_logarithms ? log_sum(row, columns) : 0, columns, wanted_.barred, forced, count, value_C,
                column_C);
        if (of_logarithms) return;
        for (Index c = 0; c < count; ++c) {  // in order already: a logarithm grows with its number
            if (value_C[c] >= 0) value_C[c] = std::log(value_C[c] / static_cast<double>(members));
        }
    }

    // The same among the words of each sentence's list. A prefix may bring barred words into it.
    void offer_listed(const float* hidden_ND, Index rows, Index count, Index time) {
        const Writer& writer = members_[0].writer;
        const Index width = writer.width, room = (width + QUADS - 1) / QUADS * QUADS;
        const bool whole = writer.output.scale_O != nullptr;
        if (whole) {
            whole_.resize((rows + SPARE) * room);
            scale_.resize(rows);
            quantise(hidden_ND, rows, width, room, whole_.data(), scale_.data());
        }
        first_.clear();  // row of each sentence that goes on
        for (Index n = 0; n < rows; ++n) {
            if (n == 0 || live_.sentence[n] != live_.sentence[n - 1]) first_.push_back(n);
        }
        first_.push_back(rows);
#pragma omp parallel
        {
            std::vector<float> logits(wanted_.beam * shortlist_->longest());
#pragma omp for schedule(static)
            for (Index group = 0; group < static_cast<Index>(first_.size()) - 1; ++group) {
                const Index first = first_[group], own = first_[group + 1] - first, sentence = live_.sentence[first];
                const Index* words = shortlist_->words(sentence);
                const Index columns = shortlist_->count(sentence), token = prefixes_.forced(sentence, time);
                const Index forced = token == NOBODY ? NOBODY : std::lower_bound(words, words + columns, token) - words;
                const std::vector<Index> barred = barred_places(words, columns);
                if (whole) {
                    shortlist_->multiply(sentence, &whole_[first * room], &scale_[first], logits.data(), own);
                } else {
                    shortlist_->multiply(sentence, hidden_ND + first * width, logits.data(), own);
                }
                for (Index n = 0; n < own; ++n) {
                    const float* row = logits.data() + n * columns;
                    const Index at = (first + n) * count;
                    offered(row, log_sum(row, columns), columns, {barred.data(), static_cast<Index>(barred.size())},
                            forced, count, &value_[at], &column_[at]);
                    for (Index c = at; c < at + count; ++c) column_[c] = words[column_[c]];
                }
            }
        }
    }

    // Where barred words stand in a list.
    std::vector<Index> barred_places(const Index* words, Index columns) const {
        std::vector<Index> found;
        for (Index b = 0; b < wanted_.barred.count; ++b) {
            const Index place = std::lower_bound(words, words + columns, wanted_.barred.column[b]) - words;
            if (place < columns && words[place] == wanted_.barred.column[b]) found.push_back(place);
        }
        return found;
    }

    // The hypotheses of the next step, of so many tokens, with those that have just ended.
    Live continued(Index length) {
        const Index rows = live_.node.size(), columns = value_.size() / rows, room = value_.size();
        std::vector<Index> taken(3 * room), slots;
        for (const Sentence& sentence : sentences_) slots.push_back(sentence.slots);
        Index count = 0;
        likeliest(live_.sentence.data(), live_.total.data(), value_.data(), slots.data(), rows, columns, prune_,
                  taken.data(), room, &count);
        Live grown;
        Index current = NOBODY, going = 0;
        for (Index m = 0; m < count; ++m) {
            const Index parent = taken[m], offered = parent * columns + taken[room + m];
            const Index sentence = live_.sentence[parent], token = column_[offered];
            if (wanted_.sets_aside()) {  // ends among the first `beam` of all, and the first `beam` that go on
                if (sentence != current) current = sentence, going = 0;
                if ((is_over(token, length, sentence) ? taken[2 * room + m] : going++) >= wanted_.beam) continue;
            }
            grown.sentence.push_back(sentence);
            grown.parent.push_back(parent);
            grown.total.push_back(live_.total[parent] + value_[offered]);
            grown.node.push_back(nodes_.size());
            nodes_.push_back({token, live_.node[parent], NOBODY, value_[offered]});
        }
        return grown;
    }

    // Hands out what ended or reached its limit, and says what goes on.
    std::vector<std::uint8_t> collected(const Live& grown, Index length) {
        const Index rows = grown.node.size();
        std::vector<std::uint8_t> going(rows, 1);
        for (Index n = 0; n < rows; ++n) {
            Sentence& sentence = sentences_[grown.sentence[n]];
            const bool ended = nodes_[grown.node[n]].token == wanted_.end;
            if (!ended && length < limit_B_[grown.sentence[n]]) continue;
            going[n] = 0;
            const double score = length_.normalised(grown.total[n], length);
            sentence.over.push_back({grown.node[n], length, score});
            if (!ended) continue;
            sentence.slots -= 1;
            sentence.scores.insert(std::upper_bound(sentence.scores.begin(), sentence.scores.end(), score,
                                                    std::greater<double>()), score);
        }
        for (Index first = 0, last = 0; first < rows; first = last) {
            double best = -INFINITY;
            for (last = first; last < rows && grown.sentence[last] == grown.sentence[first]; ++last) {
                if (going[last]) best = std::max(best, grown.total[last]);
            }
            if (beaten(grown.sentence[first], best)) std::fill(&going[first], &going[first] + last - first, 0);
        }
        return going;
    }

    // Sets aside what has its last token, and says what goes on.
    std::vector<std::uint8_t> set_aside(const Live& grown, Index length) {
        const Index rows = grown.node.size();
        std::vector<std::uint8_t> going(rows, 1);
        for (Index first = 0, last = 0; first < rows; first = last) {
            const Index source = grown.sentence[first];
            Sentence& sentence = sentences_[source];
            if (length <= prefixes_.count(source)) sentence.given += nodes_[grown.node[first]].value;
            double best = -INFINITY;
            for (last = first; last < rows && grown.sentence[last] == source; ++last) {
                const double counted = grown.total[last] - sentence.given;
                if (is_over(nodes_[grown.node[last]].token, length, source)) {
                    keep(sentence, grown.node[last], length, counted, length);
                    going[last] = 0;
                } else {
                    best = std::max(best, counted);
                }
            }
            const bool stops = enough(source, best, length);
            for (Index n = first; n < last; ++n) {
                if (!going[n]) continue;
                going[n] = !stops && length < limit_B_[source];
                if (stops || going[n]) continue;
                keep(sentence, grown.node[n], length, grown.total[n] - sentence.given, length + 1);
            }
        }
        return going;
    }

    // Whether this is a hypothesis's last token; with a forced end token, only that says so.
    bool is_over(Index token, Index length, Index sentence) const {
        return token == wanted_.end || (!wanted_.forces_end && length >= limit_B_[sentence]);
    }

    // Sets one aside, as if it had `counts_as` tokens; the `beam` best are kept, of equal ones the first.
    void keep(Sentence& sentence, Index node, Index length, double log_probability, Index counts_as) const {
        auto& over = sentence.over;
        const Over one{node, length, length_.normalised(log_probability, counts_as)};
        over.insert(std::upper_bound(over.begin(), over.end(), one,
                                     [](const Over& left, const Over& right) { return left.score > right.score; }),
                    one);
        if (static_cast<Index>(over.size()) > wanted_.beam) over.pop_back();
    }

    // Whether a sentence whose likeliest live hypothesis is as likely as this stops.
    bool enough(Index source, double best, Index length) const {
        const auto& over = sentences_[source].over;
        if (static_cast<Index>(over.size()) < wanted_.beam) return false;
        if (wanted_.stopping == Stopping::complete) return true;
        const Index as_if = wanted_.stopping == Stopping::never ? limit_B_[source] + wanted_.forces_end : length;
        return length_.normalised(best, as_if) <= over.back().score;
    }

    static Live only(Live all, const std::vector<std::uint8_t>& going) {
        Index kept = 0;
        for (std::size_t n = 0; n < going.size(); ++n) {
            if (!going[n]) continue;
            all.sentence[kept] = all.sentence[n];
            all.node[kept] = all.node[n];
            all.parent[kept] = all.parent[n];
            all.total[kept++] = all.total[n];
        }
        all.sentence.resize(kept);
        all.parent.resize(kept);
        all.node.resize(kept);
        all.total.resize(kept);
        return all;
    }

    void spell(const Over& over, Index* token_T, double* value_T) const {
        Index node = over.node;
        for (Index place = over.length; place-- > 0; node = nodes_[node].parent) {
            token_T[place] = nodes_[node].token;
            value_T[place] = nodes_[node].value;
        }
    }

    // Whether no live hypothesis, the best of which is as likely as this, can still come among the `nbest`.
    bool beaten(Index sentence, double best) const {
        const auto& scores = sentences_[sentence].scores;
        if (static_cast<Index>(scores.size()) < wanted_.nbest) return false;
        return length_.normalised(best, limit_B_[sentence]) <= scores[wanted_.nbest - 1];
    }

    std::vector<Member> members_;
    Mean mean_;
    const Index* limit_B_;
    const Wanted& wanted_;
    const Prefixes& prefixes_;
    const Length& length_;
    double prune_;
    std::unique_ptr<Shortlist> shortlist_;  // null = anything may be said
    std::vector<Sentence> sentences_;
    std::vector<Node> nodes_;
    Live live_;
    std::vector<double> value_;
    std::vector<Index> column_;
    std::vector<Index> first_;
    std::vector<std::uint8_t> whole_;
    std::vector<float> scale_;
};

inline void beam_search(const Reader* readers, const double* epsilons, Index members, Index mean, Index sources,
                        const Index* limit_B, const Wanted* wanted, const Index* word_L, const Index* first_B,
                        const std::int8_t* row_OI, const Index* prefix_P, const Index* prefix_first_B, double offset,
                        double unit, double alpha, double prune,
                        Index* token_BKT, double* value_BKT, Index* length_BK, double* score_BK, double* impossible) {
    const Length length{offset, unit, alpha};
    const Lists lists{word_L, first_B, row_OI};
    const Prefixes prefixes{prefix_P, prefix_first_B};
    Beam beam(readers, epsilons, members, static_cast<Mean>(mean), sources, limit_B, *wanted, lists, prefixes, length,
              prune);
    *impossible = beam.search(token_BKT, value_BKT, length_BK, score_BK);
}

}  // namespace transduce
