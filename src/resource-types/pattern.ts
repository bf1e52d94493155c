/**
 * Regular expressions in linear time. A `pattern` runs against what collectors send, on the one thread that
 * serves everybody: a backtracking engine lets `^(a+)+$` and forty letters stop the whole process. Here a
 * pattern becomes a set of states that all advance together (Thompson's construction), so that a test costs at
 * most text length × states. What needs backtracking, look-around and back-references, is refused.
 *
 * Only whether a text matches is asked, so greediness and captures don't matter. The meaning of single
 * characters (`\d`, `[^a-c]`, `\p{L}`) is left to the platform's own engine, one character at a time.
 */

/** A pattern that can't be had; the message says why. */
export class PatternRefused extends Error {
  override readonly name = "PatternRefused";
}

/** What Ajv needs of a regular expression. */
export interface LinearPattern {
  test(text: string): boolean;
  /** Tells patterns apart. */
  toString(): string;
}

/** More states than any sensible pattern has; bounds what `(a{100}){100}` unfolds to. */
const MAX_STATES = 2_000;
/** Groups deeper than this are nobody's pattern, and every level is a call. */
const MAX_GROUP_DEPTH = 100;

/** Whether one character, a code point, is meant. */
type CharacterTest = (codePoint: number) => boolean;

type Node =
  | { readonly kind: "character"; readonly test: CharacterTest }
  | { readonly kind: "assertion"; readonly holds: Assertion }
  | { readonly kind: "sequence"; readonly parts: readonly Node[] }
  | { readonly kind: "choice"; readonly options: readonly Node[] }
  | { readonly kind: "repeat"; readonly node: Node; readonly min: number; readonly max: number };

/** Whether an assertion holds at a position of a text. */
type Assertion = (text: string, at: number) => boolean;

const isWordAt = (text: string, at: number) => /^\w$/.test(text.charAt(at));
const atBoundary: Assertion = (text, at) => isWordAt(text, at - 1) !== isWordAt(text, at);
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  "^": (_, at) => at === 0,
  $: (text, at) => at === text.length,
  "\\b": atBoundary,
  "\\B": (text, at) => !atBoundary(text, at),
};

/** Reads an expression that the platform's engine has accepted in its `u` mode, so no syntax is checked here. */
class Parser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  choice(depth = 0): Node {
    if (depth > MAX_GROUP_DEPTH) throw new PatternRefused("its groups nest too deep");
    const options = [this.#sequence(depth)];
    while (this.#take("|")) options.push(this.#sequence(depth));
    return { kind: "choice", options };
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #sequence(depth: number): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !/^[|)]/.test(this.#source.slice(this.#at, this.#at + 1))) {
      const node = this.#term(depth);
      parts.push(node.kind === "assertion" ? node : this.#quantified(node));
    }
    return { kind: "sequence", parts };
  }

  #term(depth: number): Node {
    for (const [text, holds] of Object.entries(ASSERTIONS)) {
      if (this.#take(text)) return { kind: "assertion", holds };
    }
    if (this.#take("(")) return this.#group(depth);
    return { kind: "character", test: characterTest(this.#character()) };
  }

  #group(depth: number): Node {
    if (this.#take("?")) {
      if (/^(?:=|!|<=|<!)/.test(this.#source.slice(this.#at))) {
        throw new PatternRefused("it looks ahead or behind, which can't be done in bounded time");
      }
      const opening = /^(?::|<[^>]+>)/.exec(this.#source.slice(this.#at))?.[0];
      if (opening === undefined) throw new PatternRefused("it has a group of a kind that is not supported");
      this.#at += opening.length;
    }
    const node = this.choice(depth + 1);
    this.#at++; // The closing parenthesis.
    return node;
  }

  #quantified(node: Node): Node {
    const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.#source.slice(this.#at));
    if (found === null) return node;
    this.#at += found[0].length;
    const [, sign, least, comma, most] = found;
    if (sign !== undefined) {
      return {
        kind: "repeat",
        node,
        min: sign === "+" ? 1 : 0,
        max: sign === "?" ? 1 : Number.POSITIVE_INFINITY,
      };
    }
    const min = Number(least);
    const max = comma === undefined ? min : most === "" ? Number.POSITIVE_INFINITY : Number(most);
    return { kind: "repeat", node, min, max };
  }

  /** The source text of one character or character class. */
  #character(): string {
    const rest = this.#source.slice(this.#at);
    if (/^\\(?:[1-9]|k)/.test(rest)) {
      throw new PatternRefused("it refers back to a group, which can't be done in bounded time");
    }
    const found =
      /^(?:\[(?:\\.|[^\]\\])*\]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\[upP]\{[^}]*\}|\\x..|\\c.|\\.|.)/su.exec(
        rest,
      );
    const character = found?.[0] ?? "";
    this.#at += character.length;
    return character;
  }
}

/** Asks the platform's engine about one character at a time, which no expression can make slow. */
function characterTest(source: string): CharacterTest {
  const literal = /^[^\\[.]$/u.test(source) ? source.codePointAt(0) : undefined;
  if (literal !== undefined) return (codePoint) => codePoint === literal;
  const one = new RegExp(`^${source}$`, "u");
  const ascii = Array.from({ length: 128 }, (_, code) => one.test(String.fromCharCode(code)));
  return (codePoint) => ascii[codePoint] ?? one.test(String.fromCodePoint(codePoint));
}

type State =
  | { readonly kind: "character"; readonly test: CharacterTest; readonly next: number }
  | { readonly kind: "assertion"; readonly holds: Assertion; readonly next: number }
  | { readonly kind: "fork"; readonly next: number[] }
  | { readonly kind: "match" };

/** Builds the states from the end backwards, so that each knows what follows it. */
class Builder {
  readonly states: State[] = [{ kind: "match" }];

  /** @returns the state in which `node`, followed by the state `next`, begins. */
  build(node: Node, next: number): number {
    switch (node.kind) {
      case "character":
        return this.#add({ kind: "character", test: node.test, next });
      case "assertion":
        return this.#add({ kind: "assertion", holds: node.holds, next });
      case "sequence":
        return node.parts.reduceRight((after, part) => this.build(part, after), next);
      case "choice":
        return this.#add({ kind: "fork", next: node.options.map((option) => this.build(option, next)) });
      case "repeat":
        return this.#repeat(node.node, node.min, node.max, next);
    }
  }

  #repeat(node: Node, min: number, max: number, next: number): number {
    let after = next;
    if (max === Number.POSITIVE_INFINITY) {
      const targets: number[] = [next];
      after = this.#add({ kind: "fork", next: targets });
      targets.push(this.build(node, after));
    } else {
      // Every optional copy can be left out, and then all that follow it are.
      for (let i = min; i < max; i++)
        after = this.#add({ kind: "fork", next: [next, this.build(node, after)] });
    }
    for (let i = 0; i < min; i++) {
      const before = this.states.length;
      after = this.build(node, after);
      // Copies of nothing, `(?:){9999999}`, add no state that the bound would count.
      if (this.states.length === before) break;
    }
    return after;
  }

  #add(state: State): number {
    if (this.states.length >= MAX_STATES) throw new PatternRefused("it is too large");
    return this.states.push(state) - 1;
  }
}

/**
 * Compiles a pattern, in the platform's `u` syntax. It is not anchored, as JSON Schema has it.
 * @throws PatternRefused with the reason, without the pattern.
 */
export function linearPattern(source: string): LinearPattern {
  try {
    new RegExp(source, "u");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PatternRefused(`it is no regular expression (${reason})`, { cause: error });
  }
  const builder = new Builder();
  const start = builder.build(new Parser(source).choice(), 0);
  return { test: (text) => matches(builder.states, start, text), toString: () => `linear:${source}` };
}

function matches(states: readonly State[], start: number, text: string): boolean {
  const seenAt = new Int32Array(states.length).fill(-1);
  let active: number[] = [];
  const pending: number[] = [];

  /** Follows what takes no character; gives whether that reaches a match. */
  const enter = (into: number[], first: number, at: number): boolean => {
    pending.push(first);
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      if (seenAt[index] === at) continue;
      seenAt[index] = at;
      const state = states[index];
      if (state === undefined || state.kind === "match") {
        pending.length = 0;
        return true;
      }
      if (state.kind === "character") into.push(index);
      else if (state.kind === "fork") pending.push(...state.next);
      else if (state.holds(text, at)) pending.push(state.next);
    }
    return false;
  };

  if (enter(active, start, 0)) return true;
  for (let at = 0; at < text.length; ) {
    const codePoint = text.codePointAt(at) ?? 0;
    at += codePoint > 0xffff ? 2 : 1;
    const next: number[] = [];
    for (const index of active) {
      const state = states[index];
      if (state?.kind === "character" && state.test(codePoint) && enter(next, state.next, at)) return true;
    }
    // A match may begin at any character.
    if (enter(next, start, at)) return true;
    active = next;
  }
  return false;
}
