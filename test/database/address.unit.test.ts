import { expect, test } from "bun:test";
import { parseDatabaseUrl } from "../../src/database/address.ts";

const PLAIN = {
  host: "db.example",
  port: 5432,
  user: "ada",
  password: "",
  database: "bills",
  sslMode: "prefer",
  options: null,
  pooled: false,
} as const;

test("a plain URL: port 5432, TLS where the server offers it", () => {
  expect(parseDatabaseUrl("postgres://ada@db.example/bills")).toEqual(PLAIN);
  expect(parseDatabaseUrl("postgresql://ada@db.example/bills")).toEqual(PLAIN);
});

test("the database is named like the user unless it is named", () => {
  expect(parseDatabaseUrl("postgres://ada@db.example")).toEqual({ ...PLAIN, database: "ada" });
  expect(parseDatabaseUrl("postgres://ada@db.example/")).toEqual({ ...PLAIN, database: "ada" });
});

test("escapes, port, options, TLS", () => {
  const url =
    "postgres://a%40b:p%2Fw%23@db.example:6432/my%20bills?sslmode=verify-full&options=-c%20search_path%3Dx";
  expect(parseDatabaseUrl(url)).toEqual({
    host: "db.example",
    port: 6432,
    user: "a@b",
    password: "p/w#",
    database: "my bills",
    sslMode: "verify-full",
    options: "-c search_path=x",
    pooled: false,
  });
});

test("an IPv6 address", () => {
  expect(parseDatabaseUrl("postgres://ada@[2001:db8::1]:6432/bills")).toEqual({
    ...PLAIN,
    host: "2001:db8::1",
    port: 6432,
  });
});

test("a socket's directory, which takes no TLS", () => {
  const socket = { ...PLAIN, host: "/run/postgresql", sslMode: "disable" } as const;
  expect(parseDatabaseUrl("postgres:///bills?host=/run/postgresql&user=ada")).toEqual(socket);
  expect(parseDatabaseUrl("postgres://ada@/bills?host=%2Frun%2Fpostgresql")).toEqual(socket);
});

test("what other clients understand and Tally sets itself is passed over", () => {
  expect(parseDatabaseUrl("postgres://ada@db.example/bills?connect_timeout=10&application_name=x")).toEqual(
    PLAIN,
  );
});

test("a parameter given twice is refused", () => {
  expect(parseDatabaseUrl("postgres://ada@h/d?sslmode=disable&sslmode=require")).toBe(
    "has the parameter sslmode twice",
  );
});

test("a pooler is told of, and takes no options", () => {
  expect(parseDatabaseUrl("postgres://ada@db.example/bills?pooler=transaction")).toEqual({
    ...PLAIN,
    pooled: true,
  });
  expect(parseDatabaseUrl("postgres://ada@h/d?pooler=session")).toBe("has a pooler that is not transaction");
  expect(parseDatabaseUrl("postgres://ada@h/d?pooler=transaction&options=-c%20search_path%3Dx")).toBe(
    "has options, which a pooler has no session for: set them on the role or the database",
  );
});
