/** Answers of JSON text. The text is put in as it is: numbers stay digit for digit what the database said. */

/** An answer of `application/json`; 200 unless told. `text` is JSON already. */
export function jsonAnswer(
  text: string,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(text, {
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
