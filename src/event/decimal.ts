/** Decimal numbers by their text, and what PostgreSQL's numeric makes of them. */

/** A decimal number taken apart: `0.digits × 10^point`, with no leading or trailing zero in digits. */
export interface Decimal {
  readonly negative: boolean;
  /** Empty for zero. */
  readonly digits: string;
  readonly exponent: number;
  readonly point: number;
  /** Fractional digits that PostgreSQL's numeric keeps: it remembers trailing zeros. */
  readonly scale: number;
}

export function decimalOf(number: string): Decimal {
  const negative = number.startsWith("-");
  const e = number.search(/[eE]/);
  const mantissa = number.slice(negative ? 1 : 0, e === -1 ? number.length : e);
  const exponent = e === -1 ? 0 : Number(number.slice(e + 1));
  const dot = mantissa.indexOf(".");
  const whole = dot === -1 ? mantissa : mantissa.slice(0, dot);
  const fraction = dot === -1 ? "" : mantissa.slice(dot + 1);
  const all = whole + fraction;
  let first = 0;
  while (first < all.length && all.charCodeAt(first) === 0x30) first++;
  let last = all.length;
  while (last > first && all.charCodeAt(last - 1) === 0x30) last--;
  return {
    negative,
    digits: all.slice(first, last),
    exponent,
    point: whole.length - first + exponent,
    scale: Math.max(0, fraction.length - exponent),
  };
}

/** PostgreSQL's numeric holds this many digits before the decimal point … */
const MAX_WHOLE_DIGITS = 131_072;
/** … and this many after it. */
const MAX_SCALE = 16_383;
/** No number that fits has a larger exponent, but for zeros, whose exponents the database bounds elsewhere. */
const MAX_EXPONENT = 150_000;

/** What `numeric` makes of a number's text: null where it can't hold it, else how many characters longer it gets. */
export function growthOf(number: string): number | null {
  const decimal = decimalOf(number);
  const whole = decimal.digits === "" ? 1 : Math.max(1, decimal.point);
  const tooLarge =
    whole > MAX_WHOLE_DIGITS || decimal.scale > MAX_SCALE || Math.abs(decimal.exponent) > MAX_EXPONENT;
  return tooLarge ? null : Math.max(0, writtenLength(decimal, whole) - number.length);
}

/** How many characters the database writes the number with. */
function writtenLength({ negative, digits, scale }: Decimal, whole: number): number {
  return (negative && digits !== "" ? 1 : 0) + whole + (scale > 0 ? 1 + scale : 0);
}
