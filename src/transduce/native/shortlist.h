// Few outputs of a weight for each of many sources: the words of its list, laid out as a weight of their own, so that
// what is multiplied by it is the same to the last bit as among all words.
//
// Shapes: B sources, L words of all lists one behind the other, W outputs of a panel, I inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "linear.h"
#include "numbers.h"

namespace transduce {

// The words of source b are word_L[first_B[b]] to word_L[first_B[b + 1] - 1], in rising order.
struct Lists {
    const Index *word_L, *first_B;  // null = none
    Index count(Index source) const { return first_B[source + 1] - first_B[source]; }
    const Index* words(Index source) const { return word_L + first_B[source]; }
};

// Panels (., depth, wide) of these words' columns; what fills up the last panel is the first word again.
template <Index wide, typename Element>
inline void gather(const Element* from, const Index* word, Index words, Index depth, Element* to) {
    for (Index first = 0; first < words; first += wide, to += depth * wide) {
        std::int32_t at[wide];  // in elements: enough for a weight of 8 GB
        for (Index lane = 0; lane < wide; ++lane) {
            const Index from_word = word[first + lane < words ? first + lane : 0];
            at[lane] = static_cast<std::int32_t>(from_word / wide * depth * wide + from_word % wide);
        }
        for (Index d = 0; d < depth; ++d) {
#pragma omp simd
            for (Index lane = 0; lane < wide; ++lane) to[d * wide + lane] = from[d * wide + at[lane]];
        }
    }
}

class Shortlist {
  public:
    Shortlist(const Weight& all, const Lists& lists, Index sources)
        : all_(all), lists_(lists), whole_(all.scale_O != nullptr), panel_B_(sources + 1) {
        const Index wide = whole_ ? DEEP : WIDE, depth = whole_ ? (all.inputs + QUADS - 1) / QUADS : all.inputs;
        for (Index b = 0; b < sources; ++b) {
            const Index panels = (lists.count(b) + wide - 1) / wide;
            panel_B_[b + 1] = panel_B_[b] + panels * wide * depth;
            longest_ = std::max(longest_, lists.count(b));
        }
        const Index words = lists.first_B[sources];
        panels_.reset(new float[panel_B_[sources]]);
        if (whole_) {
            scale_.resize(words);
            above_.resize(words);
        }
        if (all.bias_O) bias_.resize(words);
#pragma omp parallel for schedule(static)
        for (Index b = 0; b < sources; ++b) lay_out(b, depth);
    }

    const Lists& lists() const { return lists_; }
    Index longest() const { return longest_; }

    Weight weight(Index source) const {
        const Index first = lists_.first_B[source];
        return {panels_.get() + panel_B_[source], whole_ ? scale_.data() + first : nullptr,
                whole_ ? above_.data() + first : nullptr, all_.bias_O ? bias_.data() + first : nullptr,
                all_.inputs, lists_.count(source)};
    }

  private:
    void lay_out(Index source, Index depth) {
        const Index *word = lists_.words(source), words = lists_.count(source), first = lists_.first_B[source];
        float* to = panels_.get() + panel_B_[source];
        if (whole_) {  // four numbers of 8 bits move as one of 32
            gather<DEEP>(static_cast<const std::int32_t*>(all_.panels), word, words, depth,
                         reinterpret_cast<std::int32_t*>(to));
        } else {
            gather<WIDE>(static_cast<const float*>(all_.panels), word, words, depth, to);
        }
        for (Index place = 0; place < words; ++place) {
            if (whole_) scale_[first + place] = all_.scale_O[word[place]];
            if (whole_) above_[first + place] = all_.above_O[word[place]];
            if (all_.bias_O) bias_[first + place] = all_.bias_O[word[place]];
        }
    }

    const Weight& all_;
    Lists lists_;
    bool whole_;
    Index longest_ = 0;
    std::vector<Index> panel_B_;
    std::unique_ptr<float[]> panels_;
    std::vector<float> scale_, bias_;
    std::vector<std::int32_t> above_;
};

}  // namespace transduce
