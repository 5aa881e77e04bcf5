// A worker for adbench in JavaScript: forward mode by the dual numbers of ganja.js, one pass for each input.
//
//     npm ci
//     adbench check -b 'process:node worker.mjs' -c log_sum_exp -c rosenbrock -c product_plus_constant

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const Algebra = createRequire(import.meta.url)("ganja.js");
const Dual = Algebra({ p: 0, q: 0, r: 1, baseType: Float64Array }); // a value and its tangent: ε² = 0

const PROTOCOL = 1;
class Unsupported extends Error {}

// Functions that the library has not for duals, from their values and slopes.
const lifted = (f, slope) => (x) => new Dual([f(x[0]), slope(x[0]) * x[1]]);
const exp = lifted(Math.exp, Math.exp);
const log = lifted(Math.log, (x) => 1 / x);
const { Add, Sub, Mul } = Dual;
const sum = (terms) => terms.reduce((a, b) => Add(a, b));

// The cases that this worker has, on lists of duals: for each input its numbers, row after row.
const CASES = {
    product_plus_constant: ({ x1, x2 }) => Add(Mul(2, Mul(x1[0], x2[0])), 7),
    log_sum_exp: ({ x }) => {
        const largest = Math.max(...x.map((each) => each[0]));
        return Add(log(sum(x.map((each) => exp(Sub(each, largest))))), largest);
    },
    rosenbrock: ({ x }) => {
        const square = (y) => Mul(y, y);
        const term = (i) => Add(Mul(100, square(Sub(x[i + 1], square(x[i])))), square(Sub(1, x[i])));
        return sum(x.slice(1).map((_, i) => term(i)));
    },
};

// Arrays as the protocol has them. `folder` and `large` are told by `hello`.
let folder, large;

function decoded({ shape, base64, file }) {
    const bytes = file === undefined ? Buffer.from(base64, "base64") : readFileSync(join(folder, file));
    return { shape, numbers: new Float64Array(Uint8Array.from(bytes).buffer) };
}

function encoded(shape, numbers, name = "out") {
    const bytes = Buffer.from(Float64Array.from(numbers).buffer);
    if (bytes.length < large) return { shape, base64: bytes.toString("base64") };
    writeFileSync(join(folder, name), bytes);
    return { shape, file: name };
}

// What each operator computes: (f, inputs, names of the active ones, vector) -> the protocol's value.
const OPERATORS = {
    value: (f, inputs) => encoded([], [f(duals(inputs))[0]]),
    jvp: (f, inputs, wrt, vector) => {
        const direction = Object.fromEntries(wrt.map((name, k) => [name, decoded(vector.list[k]).numbers]));
        return encoded([], [f(duals(inputs, direction))[1]]);
    },
    gradient: (f, inputs, wrt) => ({ list: wrt.map((name, k) => slopes(f, inputs, name, `out${k}`)) }),
};

// Every number of every input as a dual; the tangents are 0 but for those that are given.
function duals(inputs, tangents = {}) {
    const dual = (name) => (x, i) => new Dual([x, tangents[name]?.[i] ?? 0]);
    return Object.fromEntries(
        Object.entries(inputs).map(([name, { numbers }]) => [name, Array.from(numbers, dual(name))]),
    );
}

function slopes(f, inputs, name, file) {
    const { shape, numbers } = inputs[name];
    const at = duals(inputs);
    const found = Array.from(numbers, (x, i) => {
        const fixed = at[name][i];
        at[name][i] = new Dual([x, 1]);
        const slope = f(at)[1];
        at[name][i] = fixed;
        return slope;
    });
    return encoded(shape, found, file);
}

const prepared = new Map(); // number of the request -> what it prepared

const REQUESTS = {
    hello: (request) => {
        ({ folder, large } = request);
        return { protocol: PROTOCOL };
    },
    prepare: ({ id, case: name, operator, wrt }) => {
        if (!(name in CASES)) throw new Unsupported(`has no case ${name}, only ${Object.keys(CASES).join(", ")}`);
        if (!(operator in OPERATORS)) throw new Unsupported(`dual numbers have no ${operator}`);
        prepared.set(id, (inputs, vector) => OPERATORS[operator](CASES[name], inputs, wrt, vector));
        return { phases: {} };
    },
    call: ({ prepared: number, inputs, vector, runs, seconds }) => {
        const call = prepared.get(number);
        const given = Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, decoded(value)]));
        const nanoseconds = [];
        let result;
        for (let together = 0; nanoseconds.length < runs || together < seconds * 1e9; ) {
            const start = process.hrtime.bigint();
            result = call(given, vector);
            const took = Number(process.hrtime.bigint() - start);
            nanoseconds.push(took);
            together += took;
        }
        return { result, nanoseconds };
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    let id = null;
    let answer;
    try {
        const request = JSON.parse(line);
        id = request.id ?? null;
        answer = REQUESTS[request.do](request);
    } catch (error) {
        answer = error instanceof Unsupported ? { unsupported: error.message } : { failed: String(error) };
    }
    process.stdout.write(JSON.stringify({ id, ...answer }) + "\n");
}
