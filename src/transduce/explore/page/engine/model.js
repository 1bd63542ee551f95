/* Which class runs a model file. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const KINDS = {
    transformer: "Transformer",
    transformer_decoder: "Transformer",
    rnn: "Recurrent",
    rnn_decoder: "RecurrentDecoder",
    ctc: "Ctc",
  };

  /**
   * The model of a file, as E.readModelFile gives it. Throws Unsupported with the setting that cannot run here.
   *
   * alone: whether it reads no source. start(ids, run) is what a search begins with; extend(ids, state, run) gives
   * {said, state}: the log-probabilities after each of more tokens, and the state behind them. A model that writes all
   * tokens at once has `atOnce`, and `places` in its start: the log-probabilities of each place.
   * run: {record, changes}: where weights are noted, and what is changed in them.
   */
  E.model = (file) => {
    const settings = file.config.model;
    E.refuse(settings, { kind: Object.keys(KINDS) });
    for (const key of SIZES)
      if (![undefined, null].includes(settings[key]) && !isSize(settings[key]))
        throw new E.Unsupported(`model.${key} = ${JSON.stringify(settings[key])}`);
    const cut = settings.kind.startsWith("transformer") && !settings.head_width; // the width, between heads
    if (cut && settings.d_model % (settings.heads ?? 1))
      throw new E.Unsupported(`model.heads = ${settings.heads} with model.d_model = ${settings.d_model}`);
    return new E[KINDS[settings.kind]](file);
  };

  const MOST = 65536;
  const SIZES = ["d_model", "hidden", "heads", "key_value_heads", "head_width", "feed_forward"];
  SIZES.push("layers", "encoder_layers", "decoder_layers", "stride", "places");
  const isSize = (value) => Number.isInteger(value) && value >= 1 && value <= MOST;
})(window.Transduce);
