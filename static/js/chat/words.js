/* The words the script shows, translated by the server: data attributes of #chat-words. */

const source = document.getElementById("chat-words")?.dataset ?? {};

export const words = {
  say(name, values = {}) {
    const text = source[name] ?? name;
    return text.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
  },
  /* `<name>One` and `<name>Many` hold the two forms. */
  count(name, number) {
    return this.say(`${name}${number === 1 ? "One" : "Many"}`, { n: number });
  },
};
