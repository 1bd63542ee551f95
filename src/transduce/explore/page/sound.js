/* Recordings: what was recorded or dropped since the page was opened, WAV files made and read, and their sound played. */
"use strict";
(function (T) {
  const PREFIX = "sound:";
  const kept = new Map(); // "sound:1 name.wav" -> data: URL; a link holds the name alone

  /** Keeps a recording; gives its name in links. */
  T.keepSound = (name, url) => {
    for (const [known, each] of kept) if (each === url) return known;
    const text = `${PREFIX}${kept.size + 1} ${name}`;
    kept.set(text, url);
    return text;
  };
  T.sounds = () => [...kept.keys()];
  /** What people call a recording. */
  T.soundName = (text) => (text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text.split("/").at(-1));

  /** A question as the server reads it: sound in place of its name. */
  T.sent = (body) => {
    if (!body?.text?.startsWith?.(PREFIX)) return body;
    if (!kept.has(body.text)) throw new Error(T.say("sound.gone", { name: T.soundName(body.text) }));
    return { ...body, text: kept.get(body.text) };
  };

  const write = (view, at, text) => Array.from(text, (letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));

  /** A WAV file of 16-bit samples, as a Blob. samples: Float32Array. */
  T.wav = (samples, rate) => {
    const bytes = new ArrayBuffer(44 + 2 * samples.length),
      view = new DataView(bytes);
    write(view, 0, "RIFF");
    view.setUint32(4, 36 + 2 * samples.length, true);
    write(view, 8, "WAVEfmt ");
    [16, 0x10001, rate, 2 * rate].forEach((number, i) => view.setUint32(16 + 4 * i, number, true)); // PCM, one channel
    view.setUint32(32, 0x100002, true); // 2 bytes a sample, 16 bits
    write(view, 36, "data");
    view.setUint32(40, 2 * samples.length, true);
    samples.forEach((value, i) => view.setInt16(44 + 2 * i, Math.round(32767 * Math.max(-1, Math.min(1, value))), true));
    return new Blob([bytes], { type: "audio/wav" });
  };

  const HEADER = 44;
  const read = new WeakMap();
  /** The samples of the WAV file that the server sent. */
  T.samples = (recording) => {
    if (!read.has(recording)) {
      const bytes = Uint8Array.from(atob(recording.sound), (letter) => letter.charCodeAt(0));
      const view = new DataView(bytes.buffer, HEADER);
      read.set(recording, Float32Array.from({ length: view.byteLength >> 1 }, (_, i) => view.getInt16(2 * i, true) / 32768));
    }
    return read.get(recording);
  };

  /** A file as a data: URL. */
  T.dataUrl = (blob) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(blob);
    });

  T.still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const SLOW = 250; // milliseconds between two places shown, for those who want nothing to move

  let context = null,
    playing = null;
  /** Ends what is played. */
  T.hush = () => playing?.end();

  /** Plays a recording: tick(seconds) while it lasts, done() at its end. Whatever was played before ends. */
  T.play = (recording, tick, done) => {
    T.hush();
    context ??= new AudioContext();
    context.resume();
    const samples = T.samples(recording);
    const buffer = context.createBuffer(1, samples.length, recording.rate);
    buffer.copyToChannel(samples, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    const begun = context.currentTime;
    const here = {
      end() {
        if (playing !== here) return;
        playing = null;
        source.onended = null;
        source.stop();
        done();
      },
    };
    playing = here;
    source.onended = here.end;
    source.start();
    (function follow() {
      if (playing !== here) return;
      tick(Math.min(recording.seconds, context.currentTime - begun));
      if (T.still()) setTimeout(follow, SLOW);
      else requestAnimationFrame(follow);
    })();
  };
})(window.Transduce);
