/* The page's own words in two languages, the names of languages, and what the link says. */
"use strict";
window.Transduce = {};
(function (T) {
  T.texts = {
    en: {
      "tag": "en",
      "title": "Translate",
      "skip": "To the text",
      "links": "Links and settings",
      "explore": "Attention",
      "api": "API",
      "theme.dark": "Dark",
      "theme.light": "Light",
      "key": "API key",
      "from": "From",
      "to": "To",
      "und": "the model's language",
      "swap": "Swap",
      "text": "Text",
      "output": "Translation",
      "clear": "Clear",
      "copy": "Copy",
      "copied": "Copied.",
      "copy.failed": "The browser does not allow copying. Select the text and copy it yourself.",
      "again": "Try again",
      "counter": "{count} of {most} characters",
      "loading": "Loading …",
      "working": "Translating …",
      "check": "To check",
      "check.confidence": "About {percent} % of these words are right, as the model expects.",
      "check.missing": "“{part}” is in the text and not in the translation.",
      "check.repeats": "The translation repeats “{part}” {times} times.",
      "check.unknown": "The model knows few of the words in this text.",
      "glossary": "Glossary",
      "glossary.note": "A term a line, as in: street = avenue",
      "memory": "From the translation memory",
      "alternatives": "Instead of “{word}”",
      "alternatives.loading": "Loading what looks into the model …",
      "alternatives.working": "Looking for other words …",
      "alternatives.choose": "Choose a word. The translation goes on from it.",
      "alternatives.none": "The model knows no other word here.",
      "alternatives.from": "It comes from:",
      "close": "Close",
      "file": "Translate a file (Word, PowerPoint, Excel, OpenDocument, EPUB, subtitles, HTML, Markdown, PO, XLIFF, TMX, JSON, text)",
      "file.working": "Translating {file} …",
      "file.done": "Translated and saved as",
      "error.format": "{file} is of a format that cannot be read. Choose one of {formats}.",
      "error.file.large": "{file} is too large: the server takes files of up to {most} bytes.",
      "programs": "For programs",
      "programs.note": "This command sends the same request. Libraries for LibreTranslate work, too.",
      "programs.request": "The request as a command",
      "programs.copy": "Copy the command",
      "programs.docs": "All routes, with commands and forms to try them",
      "explore.hidden": "This is a link of the explorer, which this server does not show.",
      "error.long": "The text is too long: the server takes {most} characters at once.",
      "error.key": "This server wants an API key. Enter it above.",
      "error.wrong.key": "The server does not accept this API key.",
      "error.away": "The server cannot be reached. Is it running?",
      "error.busy": "The server is busy. Try again in {seconds} seconds.",
      "error.late": "The server did not answer in time, or it is stopping. Try again later.",
      "error.broken": "The server failed on this text. Its log says why.",
      "error.refused": "The server refused this: {reason}",
    },
    zh: {
      "tag": "zh-Hans",
      "title": "翻译",
      "skip": "跳到输入框",
      "links": "链接与设置",
      "explore": "注意力可视化",
      "api": "API",
      "theme.dark": "深色",
      "theme.light": "浅色",
      "key": "API 密钥",
      "from": "源语言",
      "to": "目标语言",
      "und": "模型的语言",
      "swap": "互换",
      "text": "原文",
      "output": "译文",
      "clear": "清空",
      "copy": "复制",
      "copied": "已复制。",
      "copy.failed": "浏览器不允许复制，请选中文字后自行复制。",
      "again": "重试",
      "counter": "{count} / {most} 个字符",
      "loading": "正在加载…",
      "working": "正在翻译…",
      "check": "请核对",
      "check.confidence": "模型估计译文中约有 {percent}% 的词是正确的。",
      "check.missing": "原文中的“{part}”没有出现在译文中。",
      "check.repeats": "译文把“{part}”重复了 {times} 次。",
      "check.unknown": "这段文字中的词大多是模型不认识的。",
      "glossary": "术语表",
      "glossary.note": "每行一个术语，例如：street = avenue",
      "memory": "翻译记忆库中的相似句对",
      "alternatives": "“{word}”的其他译法",
      "alternatives.loading": "正在加载可查看模型内部的组件…",
      "alternatives.working": "正在查找其他译法…",
      "alternatives.choose": "请选择一个词，译文将从该词起重新生成。",
      "alternatives.none": "模型在此处没有其他译法。",
      "alternatives.from": "对应的原文：",
      "close": "关闭",
      "file": "翻译文件（Word、PowerPoint、Excel、OpenDocument、EPUB、字幕、HTML、Markdown、PO、XLIFF、TMX、JSON、纯文本）",
      "file.working": "正在翻译 {file}…",
      "file.done": "已翻译并保存为",
      "error.format": "无法读取 {file} 的格式，请选择 {formats} 文件。",
      "error.file.large": "{file} 过大：服务器接受的文件最大为 {most} 字节。",
      "programs": "供程序调用",
      "programs.note": "下面的命令发送同样的请求，也可以使用 LibreTranslate 的各种客户端。",
      "programs.request": "命令形式的请求",
      "programs.copy": "复制命令",
      "programs.docs": "全部接口，附命令与试用表单",
      "explore.hidden": "这是注意力可视化页面的链接，但此服务器没有开放该页面。",
      "error.long": "文本过长：服务器一次最多接受 {most} 个字符。",
      "error.key": "此服务器需要 API 密钥，请在上方输入。",
      "error.wrong.key": "服务器不接受此 API 密钥。",
      "error.away": "无法连接服务器，请确认它正在运行。",
      "error.busy": "服务器繁忙，请在 {seconds} 秒后重试。",
      "error.late": "服务器没有及时回应，或正在停止，请稍后重试。",
      "error.broken": "服务器处理这段文字时出错，原因见其日志。",
      "error.refused": "服务器拒绝了请求：{reason}",
    },
  };

  const OWN = ["from", "to", "lang", "theme"];
  /** Whether what stands behind a # is a state of the explorer: it says something that this page does not know. */
  T.ofExplorer = (hash) =>
    [...new URLSearchParams(hash.slice(1))].some(([name, value]) => value && !OWN.includes(name));
  /** What the link says behind its #: from, to, lang, theme. */
  T.state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  /** Changes the link without a new entry in the history. */
  T.go = (change) => history.replaceState(null, "", `#${new URLSearchParams({ ...T.state(), ...change })}`);

  /** The language of the page: of the link, else of the browser. */
  T.language = () => {
    const asked = T.state().lang;
    if (Object.hasOwn(T.texts, asked ?? "")) return asked;
    return (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
  };

  /** The text of a key, {names} replaced; numbers as the language writes them. */
  T.say = (key, values = {}) => {
    const written = (value) => (typeof value === "number" ? value.toLocaleString(T.texts[T.language()].tag) : value);
    return T.texts[T.language()][key].replace(/\{(\w+)\}/g, (whole, name) => written(values[name]));
  };

  /** The name of a language in the page's language; a code that nobody knows is its own name. */
  T.nameOf = (code) => {
    if (code === "und") return T.say("und");
    try {
      return new Intl.DisplayNames([T.say("tag")], { type: "language" }).of(code.replaceAll("_", "-"));
    } catch {
      return code;
    }
  };
})(window.Transduce);
