/** Answers of JSON text. The text is put in as it is: numbers stay digit for digit what the database said. */

/** JSON as it is answered: a text, or pieces of one in their order, of which bytes are UTF-8. */
export type JsonText = string | readonly (string | Uint8Array)[];

/** So many characters of three bytes each at most, or bytes, fit into Bun's buffer of 16 KiB with any head of ours. */
const ONE_PIECE = 4 * 1024;

/**
 * A larger body as a stream, whose head goes out as a whole, too: after an await, Bun sends each word of a head by
 * itself where head and body don't fit into its buffer, thirty packets that wake the reader thirty times
 * (oven-sh/bun#41341).
 */
function bodyOf(text: JsonText): string | Uint8Array<ArrayBuffer> | ReadableStream {
  const pieces = piecesOf(text);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length <= ONE_PIECE) return typeof text === "string" ? text : joined(pieces);
  return new ReadableStream({
    type: "direct",
    async pull(controller) {
      for (const piece of pieces) {
        // What was written so far goes out first: a piece would be copied behind one that still waits.
        controller.flush();
        controller.write(piece);
      }
      // Until all of it has left: the server takes a request for done when this is, and may stop then.
      await controller.flush(true);
      controller.end();
    },
  });
}

/** The pieces of a JSON text. */
export function piecesOf(text: JsonText): readonly (string | Uint8Array)[] {
  return typeof text === "string" ? [text] : text;
}

function joined(pieces: readonly (string | Uint8Array)[]): Buffer<ArrayBuffer> {
  return Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));
}

/** An answer of `application/json`; 200 unless told. `text` is JSON already. */
export function jsonAnswer(
  text: JsonText,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(bodyOf(text), {
    status: options.status ?? 200,
    headers: { ...options.headers, "content-type": "application/json" },
  });
}

/**
 * One page of a list: `{"items":[…],"next_cursor":…}`.
 * @param items their JSON texts, a comma between each two; bytes are UTF-8.
 * @param next the cursor of the next page; null at the end.
 */
export function pageText(items: string | Uint8Array, next: string | null): JsonText {
  return ['{"items":[', items, `],"next_cursor":${JSON.stringify(next)}}`];
}

/** The same as an answer. */
export function pageAnswer(items: string | Uint8Array, next: string | null): Response {
  return jsonAnswer(pageText(items, next));
}
