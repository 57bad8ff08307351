// Search in a worker, also for pages opened as files: browsers start no worker from file://, so this one runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.queue = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      // Scripts that the worker imports come one after another; a promise stands for the synchronous call.
      inner.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => this.load(inner, next)), Promise.resolve());
      this.inner = inner;
      this.load(inner, url).then(() => {
        this.ready = true;
        for (const data of this.queue.splice(0)) this.deliver(data);
      });
    }
    load(inner, url) {
      return new Promise((resolve, reject) => {
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        inner.document.body.appendChild(script);
      });
    }
    deliver(data) {
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.ready) this.deliver(data);
      else this.queue.push(data);
    }
    terminate() {}
  };
}
