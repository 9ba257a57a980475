# The formula for Homebrew on Linux: the archives of a release, as they are.
# holdup records and reads Linux; on macOS it would only read, and nothing is built for it.
class Holdup < Formula
  desc "Says why a multiprocessor Linux system is slow, from a perf or ftrace recording"
  homepage "https://github.com/holdup/holdup"
  version "0.1.0"
  license any_of: ["MIT", "Apache-2.0"]

  on_linux do
    on_intel do
      url "https://github.com/holdup/holdup/releases/download/v0.1.0/holdup-0.1.0-x86_64-unknown-linux-musl.tar.gz"
      sha256 "SHA256_OF_X86_64"
    end
    on_arm do
      url "https://github.com/holdup/holdup/releases/download/v0.1.0/holdup-0.1.0-aarch64-unknown-linux-musl.tar.gz"
      sha256 "SHA256_OF_AARCH64"
    end
  end

  depends_on :linux

  def install
    bin.install "bin/holdup"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/holdup"
    zsh_completion.install "share/zsh/vendor-completions/_holdup"
    fish_completion.install "share/fish/vendor_completions.d/holdup.fish"
    doc.install Dir["share/doc/holdup/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/holdup --version")
    assert_match "workload-imbalance", shell_output("#{bin}/holdup rules")
  end
end
