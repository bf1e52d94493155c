/** Answers of JSON text. The text is put in as it is: numbers stay digit for digit what the database said. */

/** So many characters, of three bytes each at most, fit into Bun's buffer of 16 KiB with any head of ours. */
const ONE_PIECE = 4 * 1024;

/**
 * A larger body as a stream, whose head goes out as a whole, too: after an await, Bun sends each word of a head by
 * itself where head and body don't fit into its buffer, thirty packets that wake the reader thirty times
 * (oven-sh/bun#41341).
 */
function bodyOf(text: string): string | ReadableStream {
  if (text.length <= ONE_PIECE) return text;
  return new ReadableStream({
    type: "direct",
    async pull(controller) {
      controller.write(text);
      // Until all of it has left: the server takes a request for done when this is, and may stop then.
      await controller.flush(true);
      controller.end();
    },
  });
}

/** An answer of `application/json`; 200 unless told. `text` is JSON already. */
export function jsonAnswer(
  text: string,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(bodyOf(text), {
    status: options.status ?? 200,
    headers: { ...options.headers, "content-type": "application/json" },
  });
}

/**
 * The text of one page of a list: `{"items":[…],"next_cursor":…}`.
 * @param items their JSON texts, a comma between each two.
 * @param next the cursor of the next page; null at the end.
 */
export function pageText(items: string, next: string | null): string {
  return `{"items":[${items}],"next_cursor":${JSON.stringify(next)}}`;
}

/** The same as an answer. */
export function pageAnswer(items: string, next: string | null): Response {
  return jsonAnswer(pageText(items, next));
}
