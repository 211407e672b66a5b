// Joining: waits until the form may be sent, and computes where the server asks for it. Without
// this script the form works too.

const LEAST = 1100;    // milliseconds; the server takes no form that was sent sooner
const CHUNK = 4000;    // tries between two moments for the page

const ticket = document.getElementById("ticket");
const form = ticket.form;
const button = form.querySelector("button");
const bits = Number(ticket.dataset.bits);
const opened = performance.now();

// the first 32 bits of the fractional parts of the cube and square roots of the first 64 primes
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (p) => fraction(Math.cbrt(p)));
const START = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
const W = new Int32Array(64);
const turn = (x, n) => (x >>> n) | (x << (32 - n));

// SHA-256 of letters, its first 32 bits; crypto.subtle is not there on plain HTTP
function sha256(text) {
  const n = text.length, words = new Int32Array((((n + 8) >> 6) + 1) * 16);
  for (let i = 0; i < n; i++) words[i >> 2] |= text.charCodeAt(i) << (24 - 8 * (i % 4));
  words[n >> 2] |= 0x80 << (24 - 8 * (n % 4));
  words[words.length - 1] = 8 * n;
  const H = [...START];
  for (let block = 0; block < words.length; block += 16) {
    let [a, b, c, d, e, f, g, h] = H;
    for (let i = 0; i < 64; i++) {
      const x = W[(i + 49) & 63], y = W[(i + 62) & 63];    // those 15 and 2 before
      W[i] = i < 16 ? words[block + i] : (W[i - 16] + W[i - 7]
        + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => { H[i] = (H[i] + x) | 0; });
  }
  return H[0] >>> 0;
}

const pause = (ms) => new Promise((resume) => { setTimeout(resume, ms); });

async function search() {
  const seed = ticket.value.split(".").pop();    // its signature: short, so that one block will do
  for (let work = 0; ; work++) {
    if (sha256(`${seed}.${work}`) >>> (32 - bits) === 0) return work;
    if (work % CHUNK === 0) await pause(0);
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (button.disabled) return;
  button.disabled = true;
  if (bits) form.elements.work.value = await search();
  await pause(LEAST - (performance.now() - opened));
  form.submit();
});
addEventListener("pageshow", (event) => { if (event.persisted) button.disabled = false; });
if (bits) form.requestSubmit();    // they have pressed it already
