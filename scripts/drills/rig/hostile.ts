/** One hostility in a process of its own, so that its work holds up nobody else: argv is its name and the scene. */
import { HOSTILITIES } from "./hostilities.ts";

const [name = "", port = "", token = "", long = ""] = process.argv.slice(2);
const hostility = HOSTILITIES[name];
if (hostility === undefined) throw new Error(`there is no hostility ${name}`);
console.log(
  await hostility({ url: `http://127.0.0.1:${port}`, port: Number(port), token, long: long === "long" }),
);
process.exit(0);
