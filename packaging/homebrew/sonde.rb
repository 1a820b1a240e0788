# SPDX-License-Identifier: Apache-2.0
# The lab without programs, for macOS and Linux laptops: reads, compares, imports, plans, designs and reports.
class Sonde < Formula
  include Language::Python::Virtualenv

  desc "Measures, explains and improves the I/O of parallel file systems"
  homepage "https://sonde.example.org"
  head "https://sonde.example.org/sonde.git", branch: "main"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    ENV["SONDE_PURE"] = "1"
    ENV["SONDE_NO_MPI"] = "1"
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "--no-cache-dir", buildpath
    bin.install_symlink libexec/"bin/sonde"
    system libexec/"bin/python", "tools/man-pages", prefix
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sonde --version") if build.stable?
    system bin/"sonde", "help", "topics"
  end
end
