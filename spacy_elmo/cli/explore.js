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

  /** Read a sentence. Return its layers, [layer][word] of [forward; backward] each, and remember it for `predict`. */
  read(words) {
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
    this.top = both;
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

/** Return the arrays of a packed file: whole numbers, each times the step of its output, or float32. */
async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
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
    arrays[name] = outputs ? Float32Array.from(values, (value, i) => value * steps[output(i)]) : values;
  }
  return { ...header, arrays };
}

async function work() {
  let bilm = null;
  self.onmessage = async ({ data }) => {
    try {
      if (data.bilm) {
        const { options, arrays, words } = await unpack(data.bilm);
        bilm = new BiLM(options, arrays, words);
        postMessage({ id: data.id });
      } else if (data.words) {
        const start = performance.now(), layers = bilm.read(data.words);
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
const MOST_LABELS = 12; // with more points, the words beside them would cover each other
const $ = (id) => document.getElementById(id);

/** Return a new element. children: elements or text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Ask the worker; return its answer. Answers come in the order of the questions. */
function askWith(worker) {
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
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

// ---- a word in many contexts

class Contexts {
  constructor(data) {
    Object.assign(this, { data, group: [], own: { words: [], layers: [] }, weights: data.layers.map(() => 0), hovered: -1, pinned: -1, basis: null });
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
    this.basis = null;
    this.update();
    this.tell();
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
    this.draw();
    if (this.pinned >= 0) this.showNearest();
  }

  /** Draw all points. Colours have shapes too, for who does not see the colours. */
  draw() {
    if (!this.places) return;
    const { canvas, places } = this, context = canvas.getContext("2d"), ratio = devicePixelRatio;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight], style = getComputedStyle(document.body);
    if (canvas.width !== Math.round(w * ratio)) [canvas.width, canvas.height] = [w, h].map((side) => Math.round(side * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    const far = Math.max(1e-3, ...[0, 1].map((k) => places.reduce((most, place) => Math.max(most, Math.abs(place[k])), 0)));
    this.screen = places.map(([x, y]) => [w / 2 + (x / far) * (w / 2 - 24), h / 2 - (y / far) * (h / 2 - 24)]);
    const attribute = $("colour").value, values = [...new Set(this.group.filter((o) => !o.own).map((o) => o.values[attribute]))];
    const size = this.group.length > 1000 ? 3 : 6;
    this.group.forEach((occurrence, i) => {
      const kind = Math.min(values.indexOf(occurrence.values[attribute]), COLOURS.length - 1), [x, y] = this.screen[i];
      context.fillStyle = occurrence.own ? style.color : COLOURS[kind];
      shape(context, occurrence.own ? "star" : kind, x, y, occurrence.own ? 1.6 * size : size);
      if (i === this.pinned || i === this.hovered) {
        context.strokeStyle = style.color;
        context.lineWidth = i === this.pinned ? 3 : 1.5;
        context.beginPath();
        context.arc(x, y, size + 5, 0, 7);
        context.stroke();
      }
      if (this.group.length > MOST_LABELS) return;
      const { words, place, length } = occurrence, right = x > w / 2;
      context.fillStyle = style.color;
      context.font = `13px ${style.fontFamily}`;
      context.textAlign = right ? "right" : "left";
      context.fillText(words.slice(Math.max(0, place - 2), place + length + 2).join(" "), x + (right ? -12 : 12), y + 4);
    });
    const named = [...values.slice(0, COLOURS.length).map((value, k) => [k, k === COLOURS.length - 1 && values.length > COLOURS.length ? "others" : value]),
      ...(this.group.some((o) => o.own) ? [["star", "your sentence"]] : [])];
    $("legend").replaceChildren(...named.map(([kind, value]) => {
      const sample = make("canvas", { width: 18, height: 18, "aria-hidden": "true" }), small = sample.getContext("2d");
      small.fillStyle = kind === "star" ? style.color : COLOURS[kind];
      shape(small, kind, 9, 9, 6);
      return make("li", {}, sample, ` ${value}`);
    }));
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
    const flat = this.places && this.places.every(([x, y]) => Math.abs(x) + Math.abs(y) < 1e-3);
    if (this.hovered >= 0) $("hovered").replaceChildren(...told(this.group[this.hovered]));
    else $("hovered").textContent = flat
      ? "Layer 0 sees the word alone: all occurrences are equal there. Move the slider."
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

function shape(context, kind, x, y, size) {
  context.beginPath();
  if (kind === "star") for (let k = 0; k < 10; k++) {
    const angle = (k * Math.PI) / 5 - Math.PI / 2, radius = k % 2 ? size / 2.2 : size;
    context.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  } else if (kind % 4 === 0) context.arc(x, y, size, 0, 7);
  else {
    const corners = [0, 4, 3, 4][kind % 4], turn = kind % 4 === 1 ? Math.PI / 4 : -Math.PI / 2; // square, triangle, diamond
    for (let k = 0; k < corners; k++) {
      const angle = turn + (2 * Math.PI * k) / corners;
      context.lineTo(x + 1.2 * size * Math.cos(angle), y + 1.2 * size * Math.sin(angle));
    }
  }
  context.fill();
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
  const bytes = Uint8Array.from(atob($("vectors").textContent), (character) => character.charCodeAt(0));
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
  const ask = askWith(new Worker(source));
  const contexts = new Contexts(data), sentence = new Sentence(ask, data, (words, layers) => contexts.typed(words, layers));
  Object.assign(window, { contexts, sentence });
  showMixes(data.mixes);
  $("predictions").hidden = !data.predictions;
  await ask({ bilm: $("bilm").textContent });
  $("bilm").remove();
  await sentence.read(data.sentences[0]); // as the page's text has it, which may be split otherwise than what is typed
  document.body.dataset.ready = "true";
}

if (typeof document === "undefined") work();
else show();
