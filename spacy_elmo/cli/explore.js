"use strict";
// The page runs this file twice: as itself, and as a worker that computes the biLM. No library, no request.

// ---------------------------------------------------------------- the biLM, in the worker

const BEGIN_SENTENCE = 256, END_SENTENCE = 257, BEGIN_WORD = 258, END_WORD = 259, PADDING = 260; // before the 1 is added
const FORGET_BIAS = 1;
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const clip = (x, bound) => (bound === null ? x : Math.max(-bound, Math.min(bound, x)));

/** Return out += x @ W. W: the rows are the inputs. */
function addProduct(x, W, out, start = 0) {
  const n = out.length;
  for (let i = 0; i < x.length; i++) {
    const value = x[i], row = start + i * n;
    for (let j = 0; j < n; j++) out[j] += value * W[row + j];
  }
  return out;
}

/** Return W @ x + bias. W: the rows are the outputs. */
function linear(W, bias, x) {
  const out = new Float32Array(bias.length);
  for (let j = 0, k = 0; j < out.length; j++) {
    let sum = 0;
    for (let i = 0; i < x.length; i++, k++) sum += W[k] * x[i];
    out[j] = sum + bias[j];
  }
  return out;
}

class BiLM {
  /** options: as in options.json. arrays: the weights by name. words: of the softmax's rows, or null. */
  constructor(options, arrays, words) {
    Object.assign(this, { options, arrays, words });
    this.known = new Map(); // layer 0 of each word
  }

  /** Return the character ids of a word's UTF-8 bytes, or of a boundary of the sentence. */
  characters(word) {
    const most = this.options.char_cnn.max_characters_per_token;
    const bytes = typeof word === "number" ? [word] : [...new TextEncoder().encode(word)].slice(0, most - 2);
    const ids = [BEGIN_WORD, ...bytes, END_WORD];
    while (ids.length < most) ids.push(PADDING);
    return { ids: ids.map((id) => id + 1), encoded: bytes.length + 2 };
  }

  /** Return layer 0 of a word: convolutions, their maxima over positions, highway layers, projection. */
  encode(word) {
    if (this.known.has(word)) return this.known.get(word);
    const { embedding, filters, activation } = this.options.char_cnn, { ids, encoded } = this.characters(word);
    const width = embedding.dim, table = this.arrays["char_cnn.embedding.weight"], pooled = [];
    filters.forEach(([span, n], k) => {
      const W = this.arrays[`char_cnn.convolutions.${k}.weight`], bias = this.arrays[`char_cnn.convolutions.${k}.bias`];
      const last = Math.min(ids.length - span, encoded); // all windows after it hold nothing but padding, and are equal
      for (let f = 0; f < n; f++) {
        let best = -Infinity;
        for (let p = 0; p <= last; p++) {
          let sum = 0;
          for (let c = 0; c < width; c++)
            for (let s = 0; s < span; s++) sum += W[(f * width + c) * span + s] * table[ids[p + s] * width + c];
          best = Math.max(best, sum);
        }
        pooled.push(activation === "relu" ? Math.max(0, best + bias[f]) : Math.tanh(best + bias[f]));
      }
    });
    let x = Float32Array.from(pooled);
    for (let k = 0; this.arrays[`char_cnn.highways.${k}.carry.weight`]; k++) {
      const part = (gate) => ["weight", "bias"].map((name) => this.arrays[`char_cnn.highways.${k}.${gate}.${name}`]);
      const carry = linear(...part("carry"), x), transform = linear(...part("transform"), x);
      x = x.map((value, i) => value + sigmoid(carry[i]) * (Math.max(0, transform[i]) - value));
    }
    const projection = this.arrays["char_cnn.projection.weight"];
    if (projection) x = linear(projection, this.arrays["char_cnn.projection.bias"], x);
    this.known.set(word, x);
    return x;
  }

  /** Return a direction's outputs of a layer, in the order of `inputs`. The state starts from zeros. */
  scan(layer, direction, inputs) {
    const { dim, projection_dim, cell_clip, proj_clip } = this.options.lstm;
    const name = (part) => this.arrays[`lstm.layers.${layer}.${part}`];
    const [Wx, Wh, bias, P] = ["input_weight", "recurrent_weight", "bias", "projection"].map(name);
    const cell = new Float32Array(dim), outputs = [];
    let h = new Float32Array(projection_dim);
    for (const x of inputs) {
      const gates = bias.slice(direction * 4 * dim, (direction + 1) * 4 * dim); // input, candidate, forget, output
      addProduct(x, Wx, gates, direction * x.length * 4 * dim);
      addProduct(h, Wh, gates, direction * h.length * 4 * dim);
      const hidden = new Float32Array(dim);
      for (let i = 0; i < dim; i++) {
        const kept = sigmoid(gates[2 * dim + i] + FORGET_BIAS) * cell[i];
        cell[i] = clip(kept + sigmoid(gates[i]) * Math.tanh(gates[dim + i]), cell_clip);
        hidden[i] = sigmoid(gates[3 * dim + i]) * Math.tanh(cell[i]);
      }
      h = P ? addProduct(hidden, P, new Float32Array(projection_dim), direction * dim * projection_dim) : hidden;
      if (P) h = h.map((value) => clip(value, proj_clip));
      outputs.push(h);
    }
    return outputs;
  }

  /** Read a sentence. Return its layers, [layer][word] of [forward; backward] each. `predict` is about the sentence that
   *  was read last and not aside. */
  read(words, aside) {
    const { n_layers, use_skip_connections } = this.options.lstm;
    let both = [0, 1].map(() => [BEGIN_SENTENCE, ...words, END_SENTENCE].map((word) => this.encode(word)));
    const layers = [both];
    for (let k = 0; k < n_layers; k++) {
      both = both.map((inputs, direction) => {
        const turned = direction ? [...inputs].reverse() : inputs;
        let outputs = this.scan(k, direction, turned);
        if (use_skip_connections && k > 0) outputs = outputs.map((h, t) => h.map((value, i) => value + turned[t][i]));
        return direction ? outputs.reverse() : outputs;
      });
      layers.push(both);
    }
    if (!aside) this.top = both;
    return layers.map(([forward, backward]) =>
      words.map((_, i) => Float32Array.from([...forward[i + 1], ...backward[i + 1]])));
  }

  /** Return the probabilities of all words at a place of the sentence read last: forwards, backwards, and of both. */
  predict(place) {
    const W = this.arrays["softmax.weight"], bias = this.arrays["softmax.bias"];
    const directions = [this.top[0][place], this.top[1][place + 2]].map((h) => normalised(linear(W, bias, h)));
    const together = directions[0].map((p, word) => Math.log(p) + Math.log(directions[1][word]) - Math.log(this.prior(word)));
    return [...directions, normalised(together)].map((probabilities) => this.mostProbable(probabilities));
  }

  /** Zipf's law: the words stand in the order of their frequency. A factor common to all words does not matter. */
  prior(word) {
    return 1 / (word + 1);
  }

  mostProbable(probabilities, n = 10) {
    const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    return order.slice(0, n).map((word) => [this.words[word], probabilities[word]]);
  }
}

function normalised(logs) {
  const most = logs.reduce((a, b) => Math.max(a, b), -Infinity), values = logs.map((x) => Math.exp(x - most));
  const sum = values.reduce((a, b) => a + b, 0);
  return values.map((x) => x / sum);
}

function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Return the biLM of a packed file, whose arrays are whole numbers, each times the step of its output, or float32.
 *  tell: is called with the share that is done. */
async function unpack(base64, tell) {
  const PIECE = 1 << 20; // a multiple of 4, so that a piece is base64, too
  let at = 0;
  const packed = new ReadableStream({
    pull(controller) {
      controller.enqueue(bytesOf(base64.slice(at, at + PIECE)));
      at += PIECE;
      tell((0.7 * at) / base64.length);
      if (at >= base64.length) controller.close();
    },
  });
  const bytes = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const size = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, size)));
  const types = { int8: Int8Array, int16: Int16Array, float32: Float32Array }, arrays = {};
  let offset = 4 + size;
  const read = (Type, n) => {
    const part = new Type(bytes.slice(offset, offset + n * Type.BYTES_PER_ELEMENT));
    offset += n * Type.BYTES_PER_ELEMENT;
    return part;
  };
  for (const { name, type, length, outputs, lstm } of header.arrays) {
    const values = read(types[type], length), steps = read(Float32Array, outputs), half = outputs / 2;
    const output = lstm // the outputs are the last axis, of each direction
      ? (i) => (i < length / 2 ? 0 : half) + (i % half)
      : (i) => Math.floor(i / (length / outputs));
    if (outputs) {
      arrays[name] = new Float32Array(length);
      for (let i = 0; i < length; i++) arrays[name][i] = values[i] * steps[output(i)];
    } else arrays[name] = values;
    tell(0.7 + (0.3 * offset) / bytes.byteLength);
  }
  return new BiLM(header.options, arrays, header.words);
}

async function work() {
  let bilm = null;
  self.onmessage = async ({ data }) => {
    try {
      if (data.bilm) {
        bilm = await unpack(data.bilm, (share) => postMessage({ share }));
        postMessage({ id: data.id });
      } else if (data.words) {
        const start = performance.now(), layers = bilm.read(data.words, data.aside);
        postMessage({ id: data.id, layers, seconds: (performance.now() - start) / 1000 });
      } else postMessage({ id: data.id, predictions: bilm.predict(data.place) });
    } catch (error) {
      postMessage({ id: data.id, error: String(error) });
    }
  };
}

// ---------------------------------------------------------------- the page

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#888888"]; // Okabe and Ito
const SHOWN = 10; // neighbours of a pinned occurrence
const MOST_LABELS = 200; // with more points there is no room between them
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

/** Return a new element of HTML, or of SVG if its tag begins with "svg:". children: elements or text. */
function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Ask the worker; return its answer. Answers come in the order of the questions. tell: of the share that is unpacked. */
function askWith(worker, tell) {
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    if ("share" in data) return void tell(data.share);
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) reject(new Error(data.error));
    else resolve(data);
  };
  return (question) => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    worker.postMessage({ ...question, id: last });
  });
}

/** Split what was typed: at blanks, and punctuation, hyphens between letters, n't and 's apart, as the training text has
 *  them. known: the words of the page's sentences, which stay as they are. */
function tokenise(text, known) {
  return text.split(/\s+/).filter(Boolean).flatMap((piece) => (known.has(piece) ? [piece]
    : piece.replace(/(\p{L})(n['\u2019]t|['\u2019](?:s|re|ve|ll|d|m))\b/giu, "$1 $2").replace(/(?<=\p{L})-(?=\p{L})/gu, " - ")
      .replace(/([^\p{L}\p{N}\s'\u2019-]|['\u2019](?!\p{L}))/gu, " $1 ").split(/\s+/).filter(Boolean)));
}

function cosine(a, b) {
  let dot = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) { dot += a[i] * b[i]; aa += a[i] * a[i]; bb += b[i] * b[i]; }
  return aa && bb ? dot / Math.sqrt(aa * bb) : 0;
}

function mean(vectors) {
  return vectors[0].map((_, i) => vectors.reduce((sum, vector) => sum + vector[i], 0) / vectors.length);
}

/** Return the mix of the layers, [occurrence] of [width]. weights: of the layers; their sum is 1. */
function mixed(occurrences, weights) {
  return occurrences.map(({ layers }) => {
    const out = new Float32Array(layers[0].length);
    layers.forEach((layer, k) => {
      if (weights[k]) for (let i = 0; i < out.length; i++) out[i] += weights[k] * layer[i];
    });
    return out;
  });
}

/** Return two principal components of points, by iteration from the basis of the call before, so that points move. */
function plane(points, basis, rounds) {
  const width = points[0].length, mean = new Float32Array(width);
  for (const point of points) for (let i = 0; i < width; i++) mean[i] += point[i] / points.length;
  const places = () => points.map((point) => {
    let x = 0, y = 0;
    for (let i = 0; i < width; i++) { const d = point[i] - mean[i]; x += d * basis[0][i]; y += d * basis[1][i]; }
    return [x, y];
  });
  for (let round = 0; round < rounds; round++) {
    const next = [new Float64Array(width), new Float64Array(width)];
    places().forEach(([x, y], n) => {
      for (let i = 0; i < width; i++) { const d = points[n][i] - mean[i]; next[0][i] += x * d; next[1][i] += y * d; }
    });
    if (!next[0].some((value) => Math.abs(value) > 1e-9)) break; // the points are equal
    basis[0] = unit(next[0]);
    const along = next[1].reduce((sum, value, i) => sum + value * basis[0][i], 0);
    const rest = next[1].map((value, i) => value - along * basis[0][i]);
    if (rest.some((value) => Math.abs(value) > 1e-9)) basis[1] = unit(rest);
  }
  return places();
}

function unit(vector) {
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / norm);
}

/** Show a value from 0 to 1 as the strength of a background. */
function shaded(value) {
  const strength = Math.round(100 * Math.max(0, Math.min(1, value)) * 0.6);
  return `background: color-mix(in srgb, var(--accent) ${strength}%, transparent)`;
}

// ---- one sentence: predictions and similarities

class Sentence {
  constructor(ask, data, onRead) {
    Object.assign(this, { ask, data, onRead, words: [], layers: [], chosen: data.start });
    $("read").addEventListener("submit", (event) => { event.preventDefault(); this.read(tokenise($("sentence").value, data.known)); });
    $("tokens").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step && this.words.length) this.choose((this.chosen + step + this.words.length) % this.words.length, true);
    });
  }

  async read(words) {
    if (!words.length) return;
    $("speed").textContent = "reading …";
    const { layers, seconds } = await this.ask({ words });
    Object.assign(this, { words, layers });
    $("speed").textContent = `${words.length} words in ${seconds.toFixed(2)} s: ${Math.round(words.length / seconds)} words a second`;
    $("tokens").replaceChildren(...words.map((word, i) => make("button", { type: "button", onclick: () => this.choose(i) }, word)));
    this.onRead(words, layers);
    await this.choose(Math.min(this.chosen, words.length - 1));
  }

  async choose(place, focus = false) {
    this.chosen = place;
    [...$("tokens").children].forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === place));
      button.tabIndex = i === place ? 0 : -1;
      if (focus && i === place) button.focus();
    });
    this.showSimilarities();
    if (!this.data.predictions) return;
    const { predictions } = await this.ask({ place });
    if (place !== this.chosen) return;
    const titles = ["read forwards", "both together", "read backwards"];
    [predictions[0], predictions[2], predictions[1]].forEach((words, k) => {
      const most = Math.max(...words.map(([, p]) => p));
      $("predictions").children[k].replaceChildren(make("h3", {}, titles[k]), make("ol", {}, ...words.map(([word, p]) =>
        make("li", { style: shaded(p / most) }, make("span", {}, word), make("span", {}, `${(100 * p).toFixed(p < 0.1 ? 2 : 1)} %`)))));
    });
  }

  showSimilarities() {
    const rows = this.layers.map((vectors, layer) => make("tr", {}, make("th", { scope: "row" }, `layer ${layer}`),
      ...vectors.map((vector) => {
        const value = cosine(vector, vectors[this.chosen]);
        return make("td", { style: shaded(value) }, value.toFixed(2));
      })));
    const head = make("tr", {}, make("td"), ...this.words.map((word) => make("th", { scope: "col" }, word)));
    $("similarities").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows.reverse()));
    $("pinned-word").textContent = this.words[this.chosen];
  }
}

// ---- two sentences

class Pair {
  constructor(ask, data, sentence) {
    Object.assign(this, { ask, data, sentence, words: [], layers: [] });
    $("pair-layer").append(...data.layers.map((k) => make("option", { value: k }, `layer ${k}`)));
    $("pair-layer").value = 1;
    $("pair-layer").addEventListener("change", () => this.show());
    $("compare").addEventListener("submit", (event) => { event.preventDefault(); this.read(tokenise($("second").value, data.known)); });
  }

  async read(words) {
    if (!words.length) return;
    const { layers } = await this.ask({ words, aside: true });
    Object.assign(this, { words, layers });
    this.show();
  }

  /** Show the cosines of each word of one with each of the other, and mark pairs that are nearest to each other. */
  show() {
    const { words } = this, first = this.sentence.words, layer = $("pair-layer").value;
    if (!words.length || !first.length) return;
    const values = this.sentence.layers[layer].map((a) => this.layers[layer].map((b) => cosine(a, b)));
    const best = words.map((_, j) => Math.max(...values.map((row) => row[j]))), pairs = [];
    const rows = values.map((row, i) => make("tr", {}, make("th", { scope: "row" }, first[i]), ...row.map((value, j) => {
      const nearest = value === best[j] && value === Math.max(...row);
      if (nearest) pairs.push([value, `${first[i]} – ${words[j]} ${value.toFixed(2)}`]);
      return make("td", { style: shaded(value), ...(nearest ? { class: "nearest" } : {}) }, value.toFixed(2));
    })));
    const head = make("tr", {}, make("td"), ...words.map((word) => make("th", { scope: "col" }, word)));
    $("pair-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
    $("pair-nearest").textContent = `Nearest to each other: ${pairs.sort((a, b) => b[0] - a[0]).map(([, text]) => text).slice(0, 5).join(", ")}`;
  }
}

// ---- a word in many contexts

class Contexts {
  constructor(data) {
    Object.assign(this, { data, group: [], own: { words: [], layers: [] }, weights: data.layers.map((k) => Number(k === 1)), hovered: -1, pinned: -1, basis: null });
    $("word").append(...[...data.words.keys()].map((word) => make("option", { value: word }, word)));
    $("colour").append(...data.attributes.map((name) => make("option", {}, name)));
    $("layer").max = data.layers.length - 1;
    this.weights.forEach((_, k) => $("weights").append(make("label", {}, `layer ${k} `,
      make("input", { type: "range", min: 0, max: 1, step: 0.01, oninput: () => this.mixFrom("weights") }))));
    $("layer").addEventListener("input", () => this.mixFrom("layer"));
    $("word").addEventListener("change", () => this.choose($("word").value));
    $("colour").addEventListener("change", () => this.draw());
    this.canvas = $("points");
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.pin(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    $("save").addEventListener("click", () => this.save());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    $("layer").value = 1;
    this.choose($("word").value);
    this.mixFrom("layer");
  }

  /** Add the occurrences in a sentence that was typed. layers: [layer][word]. */
  typed(words, layers) {
    this.own = { words, layers };
    this.choose($("word").value);
  }

  /** Return where a word stands in the sentence that was typed: as a token, or as those that it is split into. */
  typedAs(word) {
    const { words, layers } = this.own, parts = tokenise(word, this.data.known);
    return (parts.length > 1 ? [[word], parts] : [[word]]).flatMap((form) => {
      const { length } = form, same = (place) => words.slice(place, place + length).join(" ").toLowerCase() === form.join(" ").toLowerCase();
      return [...words.keys()].filter(same).map((place) => ({ words, place, length, own: true, values: {},
        layers: layers.map((layer) => mean(layer.slice(place, place + length))) }));
    });
  }

  choose(word) {
    this.group = [...this.data.words.get(word), ...this.typedAs(word)];
    this.hovered = this.pinned = -1;
    $("nearest").replaceChildren();
    this.basis = null;
    this.update();
  }

  /** Take the mix from the slider over the layers, or from the layers' own sliders, and set the others to it. */
  mixFrom(source) {
    const sliders = [...$("weights").querySelectorAll("input")], layer = Number($("layer").value);
    if (source === "layer") this.weights = sliders.map((_, k) => Math.max(0, 1 - Math.abs(layer - k)));
    else {
      const values = sliders.map((slider) => Number(slider.value)), sum = values.reduce((a, b) => a + b, 0);
      this.weights = values.map((value) => (sum ? value / sum : 1 / values.length));
    }
    if (source === "layer") sliders.forEach((slider, k) => { slider.value = this.weights[k]; });
    $("mix").textContent = this.weights.map((weight, k) => `${Math.round(100 * weight)} % layer ${k}`).join(" + ");
    this.update();
  }

  update() {
    const width = this.group[0].layers[0].length, first = !this.basis;
    if (first) this.basis = [0, 1].map((k) => unit(Float64Array.from({ length: width }, (_, i) => Math.sin((i + 1) * (k + 1)))));
    this.vectors = mixed(this.group, this.weights);
    this.places = plane(this.vectors, this.basis, first ? 30 : 2);
    const rounding = 0.02 * Math.hypot(...this.vectors[0]); // to 8 bits: points that are no further apart are equal
    this.flat = this.places.every((place) => Math.hypot(...place) <= rounding);
    if (this.flat) this.places = this.places.map(() => [0, 0]);
    this.draw();
    if (this.pinned >= 0) this.showNearest();
    if (this.hovered < 0) this.tell();
  }

  draw() {
    if (!this.places) return;
    const { canvas } = this, context = canvas.getContext("2d"), ratio = devicePixelRatio;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [w, h].map((side) => Math.round(side * ratio)); // which clears it
    context.scale(ratio, ratio);
    context.font = `13px ${getComputedStyle(document.body).fontFamily}`;
    for (const { path, text, x, y, align, fill, stroke, width } of this.pieces(context, w, h)) {
      if (text) {
        Object.assign(context, { fillStyle: fill, textAlign: align });
        context.fillText(text, x, y);
      } else if (stroke) {
        Object.assign(context, { strokeStyle: stroke, lineWidth: width });
        context.stroke(new Path2D(path));
      } else {
        context.fillStyle = fill;
        context.fill(new Path2D(path));
      }
    }
    $("legend").replaceChildren(...this.legend.map(({ kind, fill, value }) => make("li", {},
      make("svg:svg", { width: 18, height: 18, "aria-hidden": "true" }, make("svg:path", { d: shape(kind, 9, 9, 6), fill })), ` ${value}`)));
  }

  /** Return what is seen, for a canvas and for a file: shapes and words. Colours have shapes too, for who does not see them. */
  pieces(context, w, h) {
    const { group, places } = this, { color, backgroundColor } = getComputedStyle(document.body), attribute = $("colour").value;
    const far = Math.max(1e-3, ...[0, 1].map((k) => places.reduce((most, place) => Math.max(most, Math.abs(place[k])), 0)));
    this.screen = places.map(([x, y]) => [w / 2 + (x / far) * (w / 2 - 24), h / 2 - (y / far) * (h / 2 - 24)]);
    const values = [...new Set(group.filter((o) => !o.own).map((o) => o.values[attribute]))], size = group.length > 1000 ? 3 : 6;
    const kinds = group.map((o) => (o.own ? "star" : Math.min(values.indexOf(o.values[attribute]), COLOURS.length - 1)));
    const fill = (kind) => (kind === "star" ? color : COLOURS[kind]);
    this.legend = [...values.slice(0, COLOURS.length).keys(), ...(kinds.includes("star") ? ["star"] : [])].map((kind) => ({ kind, fill: fill(kind),
      value: kind === "star" ? "your sentence" : values.length > COLOURS.length && kind === COLOURS.length - 1 ? "others" : values[kind] }));
    const shapes = this.screen.map(([x, y], i) => ({ path: shape(kinds[i], x, y, size * (group[i].own ? 1.6 : 1)), fill: fill(kinds[i]) }));
    const chosen = [...new Set([this.pinned, this.hovered])].filter((i) => i >= 0);
    const rings = chosen.map((i) => ({ path: shape(0, ...this.screen[i], size + 5), fill: "none", stroke: color, width: i === this.pinned ? 3 : 1.5 }));
    const labels = this.labels(context, w, h, size), words = labels.filter(Boolean);
    for (const i of chosen.filter((i) => !labels[i])) { // there is no room for it: it covers what is there
      const { text, wide } = this.label(context, i), [x, y] = this.screen[i], left = Math.max(4, Math.min(x + 12, w - wide - 4));
      const top = y > 30 ? y - 26 : y + 12;
      words.push({ path: `M${left - 3} ${top}h${wide + 6}v18h${-wide - 6}z`, fill: backgroundColor }, { text, x: left, y: top + 13, align: "left" });
    }
    return [...shapes, ...rings, ...words.map((piece) => ({ fill: color, ...piece }))];
  }

  label(context, i) {
    const { words, place, length } = this.group[i], text = words.slice(Math.max(0, place - 2), place + length + 2).join(" ");
    return { text, wide: context.measureText(text).width };
  }

  /** Return the words beside each point, at the first place around it where they cover neither others nor points; or null. */
  labels(context, w, h, size) {
    if (this.group.length > MOST_LABELS) return [];
    const boxes = this.screen.map(([x, y]) => [x - size, y - size, x + size, y + size]), texts = new Set();
    return this.screen.map(([x, y], i) => {
      const { text, wide } = this.label(context, i), beside = size + 8;
      if (this.group[i].own && texts.has(text)) return null; // the sentence is one of the page's, and has its words already
      for (const [dx, dy, align] of [[beside, 4, "left"], [-beside, 4, "right"], [0, -beside, "center"], [0, beside + 10, "center"],
        [beside, -8, "left"], [beside, 16, "left"], [-beside, -8, "right"], [-beside, 16, "right"]]) {
        const left = x + dx - wide * { left: 0, center: 0.5, right: 1 }[align], box = [left, y + dy - 12, left + wide, y + dy + 4];
        if (box[0] < 2 || box[1] < 2 || box[2] > w - 2 || box[3] > h - 2) continue;
        if (boxes.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
        boxes.push(box);
        texts.add(text);
        return { text, x: x + dx, y: y + dy, align };
      }
      return null;
    });
  }

  /** Save what is seen as a picture, with its colours, a title and the legend. */
  save() {
    const { canvas } = this, context = canvas.getContext("2d"), { color, backgroundColor, fontFamily } = getComputedStyle(document.body);
    const [w, h] = [canvas.clientWidth, canvas.clientHeight], word = $("word").value, title = `${word}: ${$("mix").textContent}`;
    const pieces = [{ text: title, x: 12, y: -10, fill: color }, ...this.pieces(context, w, h)];
    let [x, y] = [12, h + 24];
    for (const { kind, fill, value } of this.legend) {
      const wide = 40 + context.measureText(value).width;
      if (x > 12 && x + wide > w) [x, y] = [12, y + 22];
      pieces.push({ path: shape(kind, x + 6, y - 5, 6), fill }, { text: value, x: x + 20, y, fill: color });
      x += wide;
    }
    const anchors = { left: "start", center: "middle", right: "end" };
    const elements = pieces.map(({ path, text, x, y, align = "left", fill, stroke = "none", width = 0 }) => (text
      ? make("svg:text", { x, y, fill, "text-anchor": anchors[align] }, text)
      : make("svg:path", { d: path, fill, stroke, "stroke-width": width })));
    const tall = y + 46, picture = make("svg:svg", { viewBox: `0 -30 ${w} ${tall}`, width: w, height: tall, "font-family": fontFamily, "font-size": 13 },
      make("svg:title", {}, title), make("svg:rect", { y: -30, width: w, height: tall, fill: backgroundColor }), ...elements);
    const file = new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
    make("a", { download: `${word}.svg`, href: URL.createObjectURL(file) }).click();
  }

  /** Return the occurrence under the pointer, or -1. */
  at({ offsetX, offsetY }) {
    let best = -1, nearest = 14 ** 2;
    this.screen.forEach(([x, y], i) => {
      const distance = (x - offsetX) ** 2 + (y - offsetY) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    });
    return best;
  }

  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.draw();
    this.tell();
  }

  tell() {
    if (this.hovered >= 0) $("hovered").replaceChildren(...told(this.group[this.hovered]));
    else $("hovered").textContent = this.flat
      ? "All occurrences are equal here: layer 0 sees the word alone. Move the slider."
      : `${this.group.length} occurrences. Point at one to read it; click to pin it. Keys: arrows and Enter.`;
  }

  pin(i) {
    this.pinned = i === this.pinned ? -1 : i;
    this.draw();
    if (this.pinned < 0) $("nearest").replaceChildren();
    else this.showNearest();
  }

  showNearest() {
    const query = this.vectors[this.pinned];
    const found = this.vectors.map((vector, i) => [cosine(query, vector), i]).filter(([, i]) => i !== this.pinned)
      .sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, SHOWN);
    $("nearest").replaceChildren(make("h3", {}, "Nearest to: ", ...told(this.group[this.pinned])),
      make("ol", {}, ...found.map(([value, i]) => make("li", {}, make("b", {}, value.toFixed(3)), " ", ...told(this.group[i])))));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const order = [...this.screen.keys()].sort((a, b) => this.screen[a][0] - this.screen[b][0] || a - b);
      const place = order.indexOf(this.hovered);
      this.hover(order[place < 0 ? 0 : (place + step + order.length) % order.length]);
    } else if (event.key === "Enter" || event.key === " ") this.pin(this.hovered);
    else if (event.key === "Escape") this.pin(this.pinned);
    else return;
    event.preventDefault();
  }
}

/** Return a sentence's text, the word marked. */
function told({ words, place, length, values }) {
  const kinds = Object.values(values).filter(Boolean).join(", ");
  return [`${words.slice(0, place).join(" ")} `, make("mark", {}, words.slice(place, place + length).join(" ")), ` ${words.slice(place + length).join(" ")}`,
    ...(kinds ? [make("small", {}, ` (${kinds})`)] : [])];
}

/** Return the path of a star, circle, square, triangle or diamond. */
function shape(kind, x, y, size) {
  if (kind !== "star" && kind % 4 === 0) return `M${x - size} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0z`;
  const n = kind === "star" ? 10 : [0, 4, 3, 4][kind % 4], turn = kind % 4 === 1 ? Math.PI / 4 : -Math.PI / 2;
  const corners = Array.from({ length: n }, (_, k) => {
    const angle = turn + (2 * Math.PI * k) / n, radius = kind !== "star" ? 1.2 * size : k % 2 ? size / 2.2 : size;
    return `${x + radius * Math.cos(angle)} ${y + radius * Math.sin(angle)}`;
  });
  return `M${corners.join("L")}z`;
}

// ---- what a pipeline's components have learnt

function showMixes(mixes) {
  $("mixes").hidden = !mixes.length;
  if (!mixes.length) return;
  const head = ["component", "place", ...mixes[0].weights.map((_, k) => `layer ${k}`), "gamma"];
  $("mix-table").append(make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...mixes.map(({ component, place, weights, gamma }) => make("tr", {}, make("th", { scope: "row" }, component),
      make("td", {}, place), ...weights.map((weight) => make("td", { style: shaded(weight) }, weight.toFixed(2))),
      make("td", {}, gamma.toFixed(2))))));
}

/** Return the occurrences with their vectors. Each layer is whole numbers times a step. */
function withVectors(data) {
  const bytes = bytesOf($("vectors").textContent);
  const { width } = data, size = 4 + width; // float32 step, int8 values
  let n = 0;
  data.words = new Map(data.words);
  data.known = new Set(data.sentences.flat());
  for (const occurrences of data.words.values())
    for (const occurrence of occurrences) {
      occurrence.words = data.sentences[occurrence.sentence];
      occurrence.layers = data.layers.map(() => {
        const step = new DataView(bytes.buffer, n).getFloat32(0, true), values = new Int8Array(bytes.buffer, n + 4, width);
        n += size;
        return Float32Array.from(values, (value) => value * step);
      });
    }
  return data;
}

async function show() {
  const data = withVectors(JSON.parse($("data").textContent));
  const source = URL.createObjectURL(new Blob([$("script").textContent], { type: "text/javascript" }));
  const ask = askWith(new Worker(source), (share) => { $("unpacked").value = share; });
  const contexts = new Contexts(data), sentence = new Sentence(ask, data, (words, layers) => { contexts.typed(words, layers); pair.show(); });
  const pair = new Pair(ask, data, sentence), other = [...data.words.values()][0].at(-1).words;
  Object.assign(window, { contexts, sentence, pair });
  showMixes(data.mixes);
  $("predictions").hidden = !data.predictions;
  $("second").value = other.join(" ");
  try {
    await ask({ bilm: $("bilm").textContent });
  } catch (error) {
    $("speed").textContent = `The model can't be unpacked (${error.message}). Open the page in a newer browser.`;
    return;
  }
  $("bilm").remove();
  $("unpacked").remove();
  for (const button of document.querySelectorAll("form button")) button.disabled = false;
  await sentence.read(data.sentences[0]); // as the page's text has it, which may be split otherwise than what is typed
  document.body.dataset.ready = "true";
  await pair.read(other);
}

if (typeof document === "undefined") work();
else show();
