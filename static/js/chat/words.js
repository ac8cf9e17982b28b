/* The words the script shows, translated by the server: data attributes of #chat-words. */

const source = document.getElementById("chat-words")?.dataset ?? {};

export function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

export const words = {
  say(name, values = {}) {
    return filled(source[name] ?? name, values);
  },
  /* `<name>One` and `<name>Many` hold the two forms. */
  count(name, number) {
    return this.say(`${name}${number === 1 ? "One" : "Many"}`, { n: number });
  },
};
