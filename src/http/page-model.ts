/** What a page of a list looks like in the document. */
import { type TSchema, Type } from "@sinclair/typebox";

const nextCursor = Type.Union([Type.String(), Type.Null()], {
  description: "Hand it back as `cursor` for the page after this one; null where there is none.",
});

/**
 * The component of a list that pages.
 * @param item what the items are and their order.
 */
export const pageOf = <T extends TSchema>(id: string, item: string, items: T, description: string) =>
  Type.Object(
    { items: Type.Array(items, { description: item }), next_cursor: nextCursor },
    { $id: id, description },
  );
