/** The forms that services write times in, and the words that they refuse with. */
import { expect, test } from "bun:test";
import { formatInstant } from "../../../src/event/instant.ts";
import { readTimestamp, saidIn } from "../../../src/reconcile/openstack/item.ts";
import { recording } from "./replay.ts";

test.each([
  ["2026-10-28T10:00:18Z", "2026-10-28T10:00:18Z"],
  ["2026-10-28 10:00:18+00:00", "2026-10-28T10:00:18Z"],
  ["2026-10-28T10:00:31.386382", "2026-10-28T10:00:31.386382Z"],
  ["2026-11-16T09:40:00.000000", "2026-11-16T09:40:00Z"],
  ["2026-11-05T11:00:02", "2026-11-05T11:00:02Z"],
  ["2026-11-01 00:00:00", "2026-11-01T00:00:00Z"],
  ["2026-11-02 09:00:34.278936", "2026-11-02T09:00:34.278936Z"],
  ["2026-12-01T16:00:02.000000Z", "2026-12-01T16:00:02Z"],
  ["2026-11-05T12:00:02+0100", "2026-11-05T11:00:02Z"],
])("the time %s", (written, expected) => {
  const instant = readTimestamp(written);
  expect(instant === null ? null : formatInstant(instant)).toBe(expected);
});

test.each(["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-31T00:00:00", "2026-11-01", "1793491200"])(
  "%p is no time",
  (written) => {
    expect(readTimestamp(written)).toBeNull();
  },
);

test.each([
  ["nova/error-bad-marker", "marker [00000000-0000-0000-0000-000000000000] not found"],
  ["nova/error-expired-token", "The request you have made requires authentication."],
  [
    "nova/error-microversion-too-new",
    "Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.93.",
  ],
  ["nova/error-bad-changes-since", "Invalid input for query parameters changes-since. Value: yesterday."],
  ["cinder/error-bad-marker", "Volume 00000000-0000-0000-0000-000000000000 could not be found."],
  ["cinder/error-project-in-path-is-not-the-tokens", "Malformed request url"],
  ["neutron/error-released-404", "Floating IP 750692a9-fe2d-43bc-9ad1-f44bfe0c73cc could not be found"],
  ["glance/error-unknown-marker", "No image found with ID 00000000-0000-0000-0000-000000000000"],
  ["glance/error-expired-token", "This server could not verify that you are authorized"],
  [
    "octavia/error-unknown-marker",
    "Supplied pagination marker '00000000-0000-0000-0000-000000000000' is not valid.",
  ],
  ["octavia/error-deleted-404", "f6169201-ffc4-4459-a4bc-828af7b8dc89"],
])("what %s says", (name, words) => {
  expect(saidIn(recording(name).body)).toContain(words);
});

test("what a page of HTML says is its text, on one line and cut short", () => {
  expect(saidIn("<html><h1>502 Bad\u001b[31m Gateway</h1>\r\n<hr>nginx</html>")).toBe(
    "502 Bad [31m Gateway nginx",
  );
  expect(saidIn("x".repeat(10_000))).toBe(`${"x".repeat(200)}…`);
});
